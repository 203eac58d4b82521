"""Grants as rows: they end by themselves, and giving one again changes its end."""

from datetime import timedelta

import pytest

from bothy_server.identity.app.ports import RightStore
from bothy_server.identity.domain.rights import Right


@pytest.fixture
async def guest(rows):
    return await rows.device()


@pytest.fixture
async def host(rows):
    return await rows.host(await rows.device())


async def give(rows, guest, host, session_user, expires_at):
    """Whether it was given, and the right after that."""
    async with rows.uow() as unit:
        given = await unit.of(RightStore).add_grant(guest.person_id, host.id, session_user, expires_at)
        return given, await unit.of(RightStore).right(guest.person_id, host.id)


async def test_a_grant_counts_until_its_end(rows, guest, host, clock):
    hour, robin = timedelta(hours=1), Right(False, frozenset({"robin-shell"}))
    assert await give(rows, guest, host, "alex-shell", clock.now() - hour) == (False, None)
    assert await give(rows, guest, host, "robin-shell", clock.now() + hour) == (True, robin)
    both = Right(False, frozenset({"alex-shell", "robin-shell"}))
    assert await give(rows, guest, host, "alex-shell", None) == (True, both)
    assert await give(rows, guest, host, "alex-shell", clock.now() - hour) == (False, both), "it stays as it was"
    await rows.run("UPDATE host_grants SET expires_at = now() WHERE \"session_user\" = 'alex-shell'")
    async with rows.uow() as unit:
        assert await unit.of(RightStore).right(guest.person_id, host.id) == robin


async def test_an_owner_with_a_grant_is_both(rows, guest, host):
    await give(rows, guest, host, "alex-shell", None)
    async with rows.uow() as unit:
        await unit.of(RightStore).add_owner(guest.person_id, host.id)
        assert await unit.of(RightStore).right(guest.person_id, host.id) == Right(True, frozenset({"alex-shell"}))
