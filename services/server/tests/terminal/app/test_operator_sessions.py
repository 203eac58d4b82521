"""An operator sees facts of everybody's sessions; nobody else does, and nothing can be done with them."""

import pytest

from bothy_server.kernel.problems import Problem
from bothy_server.terminal.app.operator_sessions import OperatorSessions
from bothy_server.terminal.app.ports import Moved, SessionPage, SessionStore
from bothy_server.terminal.domain.session import SessionState


@pytest.fixture
def sessions(rows):
    return OperatorSessions(rows.uow)


async def made(rows, *states):
    """One session each, of persons of their own, oldest first."""
    found = []
    for state in states:
        device = await rows.device()
        found.append(await rows.session(device, await rows.host(device), state))
        rows.clock.advance(0.002)
    return found


async def test_an_operator_sees_everybodys_sessions_page_by_page(sessions, rows):
    one, two, three = await made(rows, SessionState.ACTIVE, SessionState.CLOSED, SessionState.DETACHED)
    async with rows.uow() as unit:
        await unit.of(SessionStore).add_moved([Moved(three.id, 11, 2**40)])
    caller, ours = (await rows.device(operator=True)).caller, {one.id, two.id, three.id}

    async def pages(*, closed):
        """All of ours, by pages of one."""
        found, before = [], None
        while page := await sessions.list(caller, SessionPage(closed, before, 1)):
            before = page[-1].record.id
            found += [each for each in page if each.record.id in ours]
        return found

    listed = await pages(closed=True)
    assert [each.record.id for each in listed] == [three.id, two.id, one.id]
    assert [(each.bytes_in, each.bytes_out) for each in listed] == [(11, 2**40), (0, 0), (0, 0)]
    assert [each.record.id for each in await pages(closed=False)] == [three.id, one.id]


async def test_nobody_else_does(sessions, rows):
    await made(rows, SessionState.ACTIVE)
    owner = await rows.device()
    await rows.host(owner)
    with pytest.raises(Problem, match="operator_required"):
        await sessions.list(owner.caller, SessionPage(closed=True))
