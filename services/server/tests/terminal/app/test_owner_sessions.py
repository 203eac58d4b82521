"""An owner sees and ends what runs on their host; nobody else does, and no refusal says why."""

import pytest

from bothy_server.kernel.problems import Problem
from bothy_server.terminal.app.owner_sessions import OwnerSessions
from bothy_server.terminal.app.ports import SessionPage
from bothy_server.terminal.domain.session import SessionState

OPENING, ACTIVE, DETACHED, CLOSED = SessionState


@pytest.fixture
def sessions(rows):
    return OwnerSessions(rows.uow)


async def owned(rows):
    """An owner, their host, and a person who may open terminals on it."""
    owner, person = await rows.device(), await rows.device()
    host = await rows.host(owner)
    await rows.grant(person, host)
    return owner, person, host


async def test_an_owner_sees_everybodys_sessions_on_the_host_newest_first(sessions, rows):
    owner, person, host = await owned(rows)
    made = []
    for state, device in ((CLOSED, person), (ACTIVE, owner), (DETACHED, person)):
        made.append(await rows.session(device, host, state))
        rows.clock.advance(0.002)
    elsewhere = await rows.host(owner)
    await rows.session(person, elsewhere)
    listed = await sessions.list(owner.caller, host.id, SessionPage(closed=True))
    assert [each.record for each in listed] == made[::-1]
    assert [each.record for each in await sessions.list(owner.caller, host.id, SessionPage(closed=False))] == made[
        :0:-1
    ]
    names = {device.person_id: name for device in (owner, person) for ((name,),) in [await name_of(rows, device)]}
    assert [each.person_name for each in listed] == [names[each.record.person_id] for each in listed]


async def name_of(rows, device):
    return await rows.run("SELECT name FROM persons WHERE id = :id", id=device.person_id)


@pytest.mark.parametrize("state", [OPENING, ACTIVE, DETACHED])
async def test_an_owner_terminates_anybodys_session(sessions, rows, state):
    owner, person, host = await owned(rows)
    session = await rows.session(person, host, state)
    view = await sessions.terminate(owner.caller, session.id)
    assert (view.record.state, view.record.close_reason, view.record.close_detail) == (CLOSED, "closed_by_owner", None)
    actor = {"person_id": owner.person_id, "device_id": owner.id}
    subject = {"subject_person_id": person.person_id, "subject_device_id": person.id}
    assert await rows.audit(session_id=session.id, **actor, **subject) == [("terminal.terminate", "closed_by_owner")]
    assert await rows.events(session_id=session.id) == ["terminal_session.changed"]
    before = await rows.content()
    assert await sessions.terminate(owner.caller, session.id) == view
    assert await rows.content() == before
    assert (rows.signals.committed_ones, rows.signals.sent) == ([], [])


async def test_who_does_not_own_the_host_is_told_that_there_is_none(sessions, rows):
    """Not the session's own person, not an operator, not the owner of another host; an unknown id sounds the same."""
    _, person, host = await owned(rows)
    session = await rows.session(person, host, ACTIVE)
    operator, other = await rows.device(operator=True), await rows.device()
    await rows.host(other)
    before = await rows.content()
    said = set()
    for caller in (person.caller, operator.caller, other.caller):
        for session_id, host_id in ((session.id, host.id), (rows.new_id(), rows.new_id())):
            for attempt in (
                sessions.terminate(caller, session_id),
                sessions.list(caller, host_id, SessionPage(closed=True)),
            ):
                with pytest.raises(Problem) as raised:
                    await attempt
                said.add((raised.value.status, raised.value.code, raised.value.detail))
    assert {code for _, code, _ in said} == {"session_unknown", "host_unknown"}
    assert len(said) == 2
    assert await rows.content() == before
