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
    async with rows.uow() as unit:
        await unit.of(RightStore).add_grant(guest.person_id, host.id, session_user, expires_at)
        return await unit.of(RightStore).right(guest.person_id, host.id)


async def test_a_grant_counts_until_its_end(rows, guest, host, clock):
    hour = timedelta(hours=1)
    assert await give(rows, guest, host, "alex-shell", clock.now() - hour) is None
    assert await give(rows, guest, host, "robin-shell", clock.now() + hour) == Right(False, frozenset({"robin-shell"}))
    both = Right(False, frozenset({"alex-shell", "robin-shell"}))
    assert await give(rows, guest, host, "alex-shell", None) == both
    assert await give(rows, guest, host, "alex-shell", clock.now() - hour) == Right(False, frozenset({"robin-shell"}))


async def test_an_owner_with_a_grant_is_both(rows, guest, host):
    await give(rows, guest, host, "alex-shell", None)
    async with rows.uow() as unit:
        await unit.of(RightStore).add_owner(guest.person_id, host.id)
        assert await unit.of(RightStore).right(guest.person_id, host.id) == Right(True, frozenset({"alex-shell"}))
