"""A new device that another one lets in: who decides, what each side learns, and that it happens once."""

import asyncio
import re
from uuid import UUID

import pytest

from bothy_kit.cluster import ORIGIN
from bothy_kit.rows import Keys
from bothy_server.identity.app.attempts import Attempts
from bothy_server.identity.app.device_logins import Asking, DeviceLoginLimits, DeviceLogins, DeviceLoginStore
from bothy_server.identity.domain.act import Act
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.rates import Rate
from bothy_wire.codes import code_hash
from bothy_wire.signing import Purpose

NOBODY = UUID(int=1)
LIMITS = DeviceLoginLimits(ttl=600, interval=5, most=10_000)


def use_cases(rows, clock, limits=LIMITS):
    return DeviceLogins(rows.uow, clock, [ORIGIN], Attempts(rows.uow, Rate(3, 60)), limits)


@pytest.fixture
def logins(rows, clock):
    return use_cases(rows, clock)


def asking(keys=None, name="laptop", *, origin=ORIGIN, signed_name=None):
    keys = keys or Keys()
    signature = keys.sign(Purpose.DEVICE_ASK, *keys.public, signed_name or name, origin=origin)
    return Asking(name, *keys.public, signature)


async def refusal(attempt):
    with pytest.raises(Problem) as raised:
        await attempt
    return raised.value.status, raised.value.code


async def asked_again(rows):
    """As if the interval were over."""
    await rows.run("UPDATE device_logins SET polled_at = NULL")


async def test_a_person_lets_a_device_in(logins, rows):
    person = await rows.device()
    keys = Keys()
    begun = await logins.begin(asking(keys))
    assert re.fullmatch("[0-9A-Z]{4}-[0-9A-Z]{4}", begun.user_code)
    assert (begun.expires_in_s, begun.interval_s) == (600, 5)
    assert await logins.poll(begun.device_code) is None
    waiting = await logins.find(person.caller, begun.user_code.lower().replace("-", " "))
    assert (waiting.name, waiting.channel_key) == ("laptop", keys.public[1])
    device_id = await logins.approve(person.caller, waiting.id, await rows.confirmed(person, Act("manage_account")))
    for _ in range(2):
        let_in = await logins.poll(begun.device_code)
        assert (let_in.device_id, let_in.person_id) == (device_id, person.person_id)
    assert await rows.run("SELECT added_by, kind, signing_key FROM devices WHERE id = :id", id=device_id) == [
        ("approval", "cli", keys.public[0])
    ]
    assert await rows.audit(device_id=person.id, subject_device_id=device_id) == [
        ("device.approve", "approved"),
        ("device.add", "approval"),
    ]


async def test_codes_are_stored_as_hashes_only(logins, rows):
    begun = await logins.begin(asking())
    ((everything,),) = await rows.run(
        "SELECT l::text FROM device_logins l WHERE user_code_hash = :hash", hash=code_hash(begun.user_code)
    )
    for code in (begun.user_code, begun.device_code):
        assert code not in everything
        assert code.replace("-", "") not in everything


async def test_a_device_that_was_sent_away_is_told_so(logins, rows):
    person = await rows.device()
    begun = await logins.begin(asking())
    waiting = await logins.find(person.caller, begun.user_code)
    await logins.deny(person.caller, waiting.id)
    assert await refusal(logins.poll(begun.device_code)) == (403, "device_login_denied")
    confirmed = await rows.confirmed(person, Act("manage_account"))
    assert await refusal(logins.approve(person.caller, waiting.id, confirmed)) == (404, "user_code_unknown")
    assert await refusal(logins.find(person.caller, begun.user_code)) == (404, "user_code_unknown")
    assert await rows.audit(device_id=person.id) == [("device.approve", "denied")]


async def test_an_approval_needs_a_fresh_confirmation_and_a_refused_one_leaves_nothing(logins, rows):
    person = await rows.device()
    begun = await logins.begin(asking())
    waiting = await logins.find(person.caller, begun.user_code)
    host = await rows.host(person)
    for other in (NOBODY, await rows.managing(person, host.id)):
        before = await rows.content()
        assert await refusal(logins.approve(person.caller, waiting.id, other)) == (401, "step_up_required")
        assert await rows.content() == before
    assert await logins.poll(begun.device_code) is None


async def test_a_device_asks_no_more_often_than_it_was_told(logins, rows):
    begun = await logins.begin(asking())
    assert await logins.poll(begun.device_code) is None
    with pytest.raises(Problem) as raised:
        await logins.poll(begun.device_code)
    assert (raised.value.status, raised.value.code, raised.value.retry_after_s) == (429, "slow_down", 5)
    await asked_again(rows)
    assert await logins.poll(begun.device_code) is None


async def test_codes_are_worth_nothing_for_one_another(logins, rows):
    person = await rows.device()
    begun = await logins.begin(asking())
    assert await refusal(logins.poll(begun.user_code)) == (401, "device_login_invalid")
    assert await refusal(logins.find(person.caller, begun.device_code)) == (404, "user_code_unknown")


async def test_what_is_too_old_is_as_if_it_had_never_been(logins, rows):
    person = await rows.device()
    begun = await logins.begin(asking())
    waiting = await logins.find(person.caller, begun.user_code)
    await rows.run("UPDATE device_logins SET expires_at = now() WHERE id = :id", id=waiting.id)
    confirmed = await rows.confirmed(person, Act("manage_account"))
    assert await refusal(logins.poll(begun.device_code)) == (401, "device_login_invalid")
    assert await refusal(logins.find(person.caller, begun.user_code)) == (404, "user_code_unknown")
    assert await refusal(logins.approve(person.caller, waiting.id, confirmed)) == (404, "user_code_unknown")
    assert await refusal(logins.deny(person.caller, waiting.id)) == (404, "user_code_unknown")
    async with rows.uow() as unit:
        assert await unit.of(DeviceLoginStore).prune() >= 1
    assert await rows.run("SELECT FROM device_logins WHERE id = :id", id=waiting.id) == []


async def test_who_does_not_hold_the_key_or_dialled_another_server_may_not_ask(logins, rows):
    keys = Keys()
    for bad in (
        asking(origin="https://other.example.com"),
        asking(signed_name="another"),
        Asking("laptop", *Keys().public, asking().signature),
        Asking("laptop", *keys.public, keys.sign(Purpose.HOST_PAIR, *keys.public, "laptop", origin=ORIGIN)),
    ):
        before = await rows.content()
        assert await refusal(logins.begin(bad)) == (401, "device_login_invalid")
        assert await rows.content() == before
    assert await refusal(logins.begin(asking(name="lap\x1btop"))) == (422, "name_invalid")


async def test_the_keys_of_a_device_ask_for_nothing_more(logins, rows):
    known = await rows.device()
    assert await refusal(logins.begin(asking(known.keys))) == (409, "device_exists")


async def test_no_more_wait_than_may(rows, clock):
    ((waiting,),) = await rows.run("SELECT count(*) FROM device_logins WHERE expires_at > now()")
    logins = use_cases(rows, clock, DeviceLoginLimits(ttl=600, interval=5, most=waiting + 1))
    await logins.begin(asking())
    with pytest.raises(Problem) as raised:
        await logins.begin(asking())
    assert (raised.value.status, raised.value.code, raised.value.retry_after_s) == (429, "device_login_limit", 60)


async def test_of_two_decisions_at_once_exactly_one_wins(logins, rows):
    person = await rows.device()
    begun = await logins.begin(asking())
    waiting = await logins.find(person.caller, begun.user_code)
    confirmed = [await rows.confirmed(person, Act("manage_account")) for _ in range(3)]
    results = await asyncio.gather(
        *(logins.approve(person.caller, waiting.id, each) for each in confirmed), return_exceptions=True
    )
    assert sorted(type(each).__name__ for each in results) == ["Problem", "Problem", "UUID"]
    assert await rows.run("SELECT count(*) FROM devices WHERE person_id = :id", id=person.person_id) == [(2,)]


async def test_guessing_user_codes_ends_also_where_the_next_guess_is_right(logins, rows):
    person, begun = await rows.device(), await logins.begin(asking())
    codes = [await refusal(logins.find(person.caller, f"AAAA-AAA{each}")) for each in range(5)]
    assert codes == [(404, "user_code_unknown")] * 3 + [(429, "rate_limited")] * 2
    assert await refusal(logins.find(person.caller, begun.user_code)) == (429, "rate_limited")
    assert (await logins.find((await rows.device()).caller, begun.user_code)).name == "laptop"
