"""What a person may see of an event: every kind, for everybody who has or has not to do with it."""

from uuid import UUID, uuid4

import pytest

from bothy_server.events.domain.sight import Sight
from bothy_server.kernel.unit import Event
from bothy_wire.ids import PersonId

ROBIN, SAM = PersonId(uuid4()), PersonId(uuid4())
HOST, ANOTHER, SESSION = uuid4(), uuid4(), uuid4()
PERSONS: dict[UUID, PersonId] = {SESSION: ROBIN}
NOTHING: frozenset[UUID] = frozenset()

SIGHTS = {
    "robin": Sight(ROBIN, is_operator=False, owned=NOTHING, granted=NOTHING),
    "owner": Sight(SAM, is_operator=False, owned=frozenset({HOST}), granted=NOTHING),
    "granted": Sight(SAM, is_operator=False, owned=NOTHING, granted=frozenset({HOST})),
    "operator": Sight(SAM, is_operator=True, owned=NOTHING, granted=NOTHING),
    "elsewhere": Sight(SAM, is_operator=False, owned=frozenset({ANOTHER}), granted=frozenset({ANOTHER})),
}


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (Event("terminal_session.changed", host_id=HOST, session_id=SESSION), {"robin", "owner", "operator"}),
        (Event("terminal_session.changed", host_id=HOST, session_id=uuid4()), {"owner", "operator"}),
        (Event("terminal_session.changed", host_id=HOST), {"owner", "operator"}),
        (Event("host.updated", host_id=HOST), {"owner", "granted", "operator"}),
        (Event("rights.changed", host_id=HOST, person_id=ROBIN), {"robin", "owner", "operator"}),
        (Event("rights.changed", person_id=ROBIN, device_id=uuid4()), {"robin", "operator"}),
        (Event("node.changed", node_id=uuid4()), {"operator"}),
        (Event("keys.changed"), set()),
    ],
)
def test_an_event_is_told_to_whom_it_concerns(event: Event, told: set[str]) -> None:
    assert {name for name, sight in SIGHTS.items() if sight.sees(event, PERSONS)} == told


def test_a_host_is_seen_with_any_right_on_it() -> None:
    assert {name for name, sight in SIGHTS.items() if sight.sees_host(HOST)} == {"owner", "granted", "operator"}
