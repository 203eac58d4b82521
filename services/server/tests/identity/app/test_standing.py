"""Who manages a host and who lets somebody in, asked at the moment of the act."""

import asyncio

import pytest

from bothy_server.identity.app.standing import check_manages, check_operates, check_owns
from bothy_server.kernel.problems import Problem


async def answers(rows, caller, host):
    """What managing and letting in are answered with; None is a yes."""
    codes = []
    for check in (check_manages, check_owns):
        async with rows.uow() as unit:
            try:
                await check(unit, caller, host.id)
            except Problem as problem:
                codes.append((problem.status, problem.code))
            else:
                codes.append(None)
    return codes


UNKNOWN = (404, "host_unknown")


async def test_who_may_do_what(rows):
    owner, guest, stranger = [await rows.device() for _ in range(3)]
    operator, both = [await rows.device(operator=True) for _ in range(2)]
    host = await rows.host(owner, both)
    await rows.grant(guest, host)
    await rows.grant(operator, host)
    assert await answers(rows, owner.caller, host) == [None, None]
    assert await answers(rows, both.caller, host) == [None, None]
    assert await answers(rows, None, host) == [None, None], "the server's own command line"
    assert await answers(rows, guest.caller, host) == [UNKNOWN, UNKNOWN]
    assert await answers(rows, stranger.caller, host) == [UNKNOWN, UNKNOWN]
    assert await answers(rows, operator.caller, host) == [None, (403, "owner_required")], "also with a grant"


async def test_an_operator_who_is_none_any_more_is_asked_now(rows):
    operator = await rows.device(operator=True)
    host = await rows.host(await rows.device())
    await rows.run("UPDATE persons SET is_operator = false WHERE id = :id", id=operator.person_id)
    assert await answers(rows, operator.caller, host) == [UNKNOWN, UNKNOWN], "whatever it was when the request began"
    async with rows.uow() as unit:
        with pytest.raises(Problem, match="operator_required"):
            await check_operates(unit, operator.caller)


async def test_only_operators_and_the_command_line_operate(rows):
    async with rows.uow() as unit:
        await check_operates(unit, (await asyncio.create_task(rows.device(operator=True))).caller)
        await check_operates(unit, None)
        with pytest.raises(Problem, match="operator_required"):
            await check_operates(unit, (await asyncio.create_task(rows.device())).caller)


async def test_an_owner_who_is_one_no_longer_has_no_say(rows):
    owner = await rows.device()
    host = await rows.host(owner)
    await rows.run("DELETE FROM host_owners WHERE host_id = :id", id=host.id)
    assert await answers(rows, owner.caller, host) == [UNKNOWN, UNKNOWN]
