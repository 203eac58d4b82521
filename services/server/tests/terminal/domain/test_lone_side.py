import pytest

from bothy_server.terminal.domain.lone_side import SIDE_NAME, is_given_up, lone_side_deadline
from bothy_server.terminal.domain.session import Row, SessionState

OPENING, ACTIVE, DETACHED, _ = SessionState


@pytest.mark.parametrize(
    ("side", "row", "given_up"),
    [
        ("client", Row(OPENING, 1), True),
        ("host", Row(OPENING, 1), True),
        ("client", Row(OPENING, 1, paired=True), True),
        ("host", Row(OPENING, 1, paired=True), True),
        ("client", Row(ACTIVE, 1, paired=True), True),
        ("client", Row(DETACHED, 1, paired=True), True),
        ("host", Row(ACTIVE, 1, paired=True), False),
        ("host", Row(DETACHED, 1, paired=True), False),
    ],
)
def test_lone_side_outcome(side, row, given_up):
    assert is_given_up(side, row) is given_up


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
