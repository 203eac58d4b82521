import pytest

from bothy_server.terminal.domain.lone_side import (
    SIDE_NAME,
    LoneOutcome,
    lone_side_deadline,
    lone_side_outcome,
)
from bothy_server.terminal.domain.session import Row, SessionState

OPENING, ACTIVE, DETACHED, _ = SessionState


@pytest.mark.parametrize(
    ("side", "row", "outcome"),
    [
        ("client", Row(OPENING, 1), LoneOutcome("client", ends_row=True)),
        ("host", Row(OPENING, 1), LoneOutcome("host", ends_row=True)),
        ("client", Row(OPENING, 1, paired=True), LoneOutcome("client", ends_row=False)),
        ("host", Row(OPENING, 1, paired=True), LoneOutcome("host", ends_row=False)),
        ("client", Row(ACTIVE, 1, paired=True), LoneOutcome("client", ends_row=False)),
        ("client", Row(DETACHED, 1, paired=True), LoneOutcome("client", ends_row=False)),
        ("host", Row(ACTIVE, 1, paired=True), None),
        ("host", Row(DETACHED, 1, paired=True), None),
    ],
)
def test_lone_side_outcome(side, row, outcome):
    assert lone_side_outcome(side, row) == outcome


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
