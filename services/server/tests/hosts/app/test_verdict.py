"""A host whose key two machines hold is disabled once, with all that belongs to it."""

import asyncio
import logging

import pytest

from bothy_server.hosts.app.control_links import ControlLinks
from bothy_server.hosts.app.ports import HostStore
from bothy_server.hosts.app.verdict import Verdict
from bothy_server.hosts.domain.host import HostState
from bothy_server.hosts.domain.signals import HostClose
from bothy_server.terminal.app.host_sessions import HostSessions
from bothy_server.terminal.domain.session import SessionState


@pytest.fixture
def verdict(rows):
    return Verdict(rows.uow, HostSessions(rows.uow, ControlLinks()))


@pytest.fixture
async def owner(rows):
    return await rows.device()


async def stored(rows, host):
    async with rows.uow() as unit:
        return await unit.of(HostStore).get(host.id)


async def test_the_host_its_sessions_and_the_news_are_one(verdict, rows, owner, caplog):
    host = await rows.host(owner)
    session = await rows.session(owner, host, SessionState.ACTIVE)
    with caplog.at_level(logging.WARNING):
        assert await verdict.disable(host.id, 1)
    after = await stored(rows, host)
    assert (after.state, after.disabled_reason) == (HostState.DISABLED, "duplicate_connection")
    ended = await rows.record(session.id)
    assert (ended.state, ended.close_reason) == (SessionState.CLOSED, "host_disabled")
    assert ("host.connect", "duplicate_connection") in await rows.audit(host_id=host.id)
    assert await rows.events(host_id=host.id) == ["terminal_session.changed", "host.updated"]
    assert rows.signals.committed_ones == [HostClose(host.id)]
    (record,) = [each for each in caplog.records if each.message == "terminal duplicate control connection"]
    assert getattr(record, "bothy.close.code") == 4112
    assert str(host.id) not in caplog.text


async def test_of_two_verdicts_one_is_written(verdict, rows, owner):
    host = await rows.host(owner)
    done = await asyncio.gather(*(verdict.disable(host.id, 1) for _ in range(3)))
    assert sorted(done) == [False, False, True]
    assert await rows.audit(host_id=host.id) == [("host.connect", "duplicate_connection")]
    assert await rows.events(host_id=host.id) == ["host.updated"]


@pytest.mark.parametrize("state", [HostState.PENDING, HostState.DISABLED, HostState.RETIRED])
async def test_only_an_active_host_is_disabled(verdict, rows, owner, state):
    host = await rows.host(owner, state=state)
    before = await rows.content()
    assert not await verdict.disable(host.id, 1)
    assert await rows.content() == before


async def test_a_host_that_was_paired_again_meanwhile_is_left_alone(verdict, rows, owner):
    host = await rows.host(owner)
    await rows.run("UPDATE hosts SET pairing_seq = 2 WHERE id = :id", id=host.id)
    assert not await verdict.disable(host.id, 1)
    assert (await stored(rows, host)).state is HostState.ACTIVE
