import pytest

from bothy_server.terminal.domain.lone_side import SIDE_NAME, is_given_up, lone_side_deadline
from bothy_server.terminal.domain.rendezvous import Close, Count, EndRow
from bothy_server.terminal.domain.session import Row, SessionState
from bothy_wire.close_codes import CloseCode

OPENING, ACTIVE, DETACHED, _ = SessionState
LONE = Close(1, CloseCode.HOST_UNAVAILABLE, "terminal_host_unavailable")


@pytest.mark.parametrize(
    ("kind", "row", "outcome"),
    [
        ("device", Row(OPENING, 1), [Count("client"), EndRow("open_timeout"), LONE]),
        ("host", Row(OPENING, 1), [Count("host"), EndRow("open_timeout"), LONE]),
        ("device", Row(OPENING, 1, paired=True, paired_seq=1), [Count("client"), LONE]),
        ("host", Row(OPENING, 1, paired=True, paired_seq=1), [Count("host"), LONE]),
        ("device", Row(ACTIVE, 1, paired=True, paired_seq=1), [Count("client"), LONE]),
        ("device", Row(DETACHED, 1, paired=True, paired_seq=1), [Count("client"), LONE]),
        ("host", Row(ACTIVE, 1, paired=True, paired_seq=1), []),
        ("host", Row(DETACHED, 1, paired=True, paired_seq=1), []),
    ],
)
def test_lone_side_outcome(meeting, kind, row, outcome):
    """A session that never met ends with its lone side, any other stays; nobody gives up the host's side of one that runs."""
    assert is_given_up(SIDE_NAME[kind], row) is bool(outcome)
    meeting.row = row
    meeting.arrive(1, kind, 1)
    done = meeting.wait(20)
    assert [each for each in done if isinstance(each, Count | EndRow | Close)] == outcome


@pytest.mark.parametrize("kind", ["device", "host"])
def test_lone_side_deadline(meeting, kind):
    """One millisecond before the identify plus ``terminal.open_timeout`` nothing happens, at that instant it does."""
    assert lone_side_deadline(100.0, 20.0) == 120.0
    meeting.now = 100.0
    meeting.arrive(1, kind, 1)
    assert meeting.wait(119.999) == []
    assert [effect.conn for effect in meeting.wait(120.0) if hasattr(effect, "code")] == [1]


def test_a_device_is_counted_as_client():
    assert SIDE_NAME == {"device": "client", "host": "host"}
