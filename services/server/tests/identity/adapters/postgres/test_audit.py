"""What each part of a filter lets through."""

from datetime import timedelta
from uuid import uuid4

import pytest

from bothy_server.identity.app.audit import AuditFilter, AuditStore
from bothy_server.kernel.unit import AuditEntry

ENDLESS = 1 << 62


@pytest.fixture
async def written(rows):
    """Five entries with ids that nothing else has."""
    ids = {name: uuid4() for name in ("alex", "sam", "laptop", "phone", "host", "session")}
    entries = [
        AuditEntry("terminal.open", "opened", ids["alex"], ids["laptop"], ids["host"], ids["session"]),
        AuditEntry("device.revoke", "revoked", ids["sam"], ids["phone"], subject_device_id=ids["laptop"]),
        AuditEntry("person.state", "disabled", ids["sam"], ids["phone"], subject_person_id=ids["alex"]),
        AuditEntry("host.pair", "paired", host_id=ids["host"]),
        AuditEntry("attempt.refused", "code"),
    ]
    for entry in entries:  # each at an instant of its own
        async with rows.uow() as unit:
            unit.audit(entry)
    return ids


async def read(rows, asked, *, first=1, before=ENDLESS, limit=100):
    async with rows.uow() as unit:
        return await unit.of(AuditStore).entries(asked, None, first, before, limit)


@pytest.mark.parametrize(
    ("parts", "actions"),
    [
        ({"person_id": "alex"}, ["person.state", "terminal.open"]),
        ({"person_id": "sam"}, ["person.state", "device.revoke"]),
        ({"device_id": "laptop"}, ["device.revoke", "terminal.open"]),
        ({"host_id": "host"}, ["host.pair", "terminal.open"]),
        ({"session_id": "session"}, ["terminal.open"]),
        ({"person_id": "alex", "host_id": "host"}, ["terminal.open"]),
        ({"person_id": "sam", "host_id": "host"}, []),
    ],
)
async def test_ids_narrow_it(rows, written, parts, actions):
    asked = AuditFilter(**{name: written[which] for name, which in parts.items()})
    assert [entry.action for entry in await read(rows, asked)] == actions


async def test_an_action_narrows_it(rows, written):
    asked = AuditFilter(host_id=written["host"], action="host.pair")
    assert [entry.action for entry in await read(rows, asked)] == ["host.pair"]


async def test_instants_bound_it_from_below_and_from_above(rows, written):
    ours = AuditFilter(person_id=written["sam"])
    later, earlier = await read(rows, ours)
    assert earlier.at < later.at
    since = AuditFilter(person_id=written["sam"], since=later.at)
    until = AuditFilter(person_id=written["sam"], until=later.at)
    assert await read(rows, since) == [later]
    assert await read(rows, until) == [earlier]
    nothing = AuditFilter(person_id=written["sam"], since=later.at + timedelta(microseconds=1))
    assert await read(rows, nothing) == []


async def test_positions_bound_it(rows, written):
    ours = AuditFilter(person_id=written["sam"])
    later, earlier = await read(rows, ours)
    assert await read(rows, ours, before=later.position) == [earlier]
    assert await read(rows, ours, first=later.position) == [later]
    assert await read(rows, ours, limit=1) == [later]


async def test_the_head_is_the_last_position(rows, written):
    async with rows.uow() as unit:
        head = await unit.of(AuditStore).head()
    assert (await read(rows, AuditFilter(), limit=1))[0].position == head
