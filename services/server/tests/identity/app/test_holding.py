"""Who acts is asked for again in the unit that acts: a revocation comes before it or after it, never beside it."""

import asyncio

import pytest
from sqlalchemy import text

from bothy_server.identity.app.holding import hold_caller
from bothy_server.kernel.problems import Problem

REVOKE = "UPDATE devices SET revoked_at = now() WHERE id = :id"
DISABLE = "UPDATE persons SET disabled_at = now() WHERE id = (SELECT person_id FROM devices WHERE id = :id)"


@pytest.mark.parametrize("loss", [REVOKE, DISABLE])
async def test_a_loss_waits_for_who_acts(rows, loss):
    device = await rows.device()
    async with rows.uow() as unit:
        await hold_caller(unit, device.caller)
        losing = asyncio.create_task(rows.run(loss, id=device.id))
        await rows.blocked()
        assert not losing.done()
    await losing


@pytest.mark.parametrize("loss", [REVOKE, DISABLE])
async def test_who_acts_waits_for_a_loss_and_then_knows(rows, loss):
    device = await rows.device()

    async def act():
        async with rows.uow() as unit:
            await hold_caller(unit, device.caller)

    async with rows.uow() as unit:
        await unit.connection.execute(text(loss), {"id": device.id})
        acting = asyncio.create_task(act())
        await rows.blocked()
    with pytest.raises(Problem) as raised:
        await acting
    assert (raised.value.status, raised.value.code) == (401, "token_invalid")


async def test_two_acts_of_one_person_do_not_wait_for_one_another(rows):
    device = await rows.device()

    async def act():
        async with rows.uow() as unit:
            await hold_caller(unit, device.caller)

    async with rows.uow() as unit:
        await hold_caller(unit, device.caller)
        await asyncio.create_task(act())
