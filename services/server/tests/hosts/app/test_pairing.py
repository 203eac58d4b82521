"""How a machine becomes a host, and how it stops being one."""

import asyncio
from uuid import UUID

import pytest

from bothy_kit.cluster import ORIGIN
from bothy_kit.rows import Keys
from bothy_server.hosts.app import join_values
from bothy_server.hosts.app.control_links import ControlLinks
from bothy_server.hosts.app.pairing import Pairing, PairingLimits
from bothy_server.hosts.app.ports import HostStore
from bothy_server.hosts.domain.host import HostState
from bothy_server.hosts.domain.signals import HostClose
from bothy_server.identity.app.api import Act, rights_of
from bothy_server.identity.domain.rights import Right
from bothy_server.kernel.problems import Problem
from bothy_server.terminal.app.host_sessions import HostSessions
from bothy_server.terminal.domain.session import SessionState
from bothy_wire.codes import code_hash
from bothy_wire.signing import Purpose, fingerprint

NOBODY = UUID(int=1)
ELSEWHERE = "https://other.example.com"


def new_pairing(rows, tokens, mode="confirm"):
    events = HostSessions(rows.uow, ControlLinks())
    return Pairing(rows.uow, tokens, rows.clock, [ORIGIN], events, PairingLimits(900, mode))


@pytest.fixture
def pairing(rows, tokens):
    return new_pairing(rows, tokens)


@pytest.fixture
async def owner(rows):
    return await rows.device()


async def pair(pairing, code, keys, *, origin=ORIGIN, signature=None):
    made = keys.sign(Purpose.HOST_PAIR, code_hash(code), *keys.public, origin=origin)
    return await pairing.pair(code, *keys.public, signature or made)


async def stored(rows, host_id):
    async with rows.uow() as unit:
        return await unit.of(HostStore).get(host_id)


async def refusal(rows, attempt):
    """The code of a refusal that left nothing behind."""
    before = await rows.content()
    with pytest.raises(Problem) as raised:
        await attempt
    assert await rows.content() == before
    return raised.value.status, raised.value.code


# ---- a row ----------------------------------------------------------------------------------------------------------


async def test_an_operator_makes_a_host(pairing, rows, owner):
    operator, name = await rows.device(operator=True), rows.name("lab")
    unconfirmed = pairing.create(name, str(owner.person_id), operator.caller, NOBODY)
    assert await refusal(rows, unconfirmed) == (401, "step_up_required")
    confirmed = await rows.confirmed(operator, Act("manage_relay"))
    made = await pairing.create(name, str(owner.person_id), operator.caller, confirmed)
    assert (made.name, made.state, made.pairing_seq, made.paired) == (name, HostState.PENDING, 1, False)
    async with rows.uow() as unit:
        assert await rights_of(unit, owner.person_id) == {made.id: Right(owner=True)}
    entry = {"device_id": operator.id, "subject_person_id": owner.person_id}
    assert await rows.audit(host_id=made.id, **entry) == [("host.create", "created")]
    assert await rows.events(host_id=made.id) == ["host.updated"]
    assert await pairing.find(name) == made


async def test_nobody_else_makes_a_host(pairing, rows, owner):
    attempt = pairing.create(rows.name("lab"), str(owner.person_id), owner.caller)
    assert await refusal(rows, attempt) == (403, "operator_required")


async def test_the_command_line_makes_a_host_for_a_person(pairing, rows, owner):
    ((person,),) = await rows.run("SELECT name FROM persons WHERE id = :id", id=owner.person_id)
    made = await pairing.create(rows.name("lab"), person, None)
    assert await rows.run("SELECT person_id FROM host_owners WHERE host_id = :id", id=made.id) == [(owner.person_id,)]
    assert await refusal(rows, pairing.create(rows.name("lab"), "Nobody", None)) == (404, "person_unknown")


async def test_a_name_is_one_hosts_until_that_is_retired(pairing, rows, owner):
    name = rows.name("lab")
    first = await pairing.create(name, str(owner.person_id), None)
    assert await refusal(rows, pairing.create(name, str(owner.person_id), None)) == (409, "host_exists")
    await rows.run("UPDATE hosts SET state = 'retired' WHERE id = :id", id=first.id)
    assert await refusal(rows, pairing.find(name)) == (404, "host_unknown")
    assert (await pairing.create(name, str(owner.person_id), None)).id != first.id


# ---- a code ---------------------------------------------------------------------------------------------------------


async def test_a_code_pairs_once(pairing, rows, tokens, owner):
    host_id = await rows.unpaired_host(owner)
    code, life = await pairing.issue_code(host_id, owner.caller, await rows.managing(owner, host_id))
    assert life == 900
    keys = Keys()
    paired = await pair(pairing, code, keys)
    host = await stored(rows, host_id)
    assert paired.host == host
    assert (host.signing_key, host.channel_key) == keys.public
    assert (host.state, host.pairing_seq, host.join_confirmed, host.join_offered) == (HostState.PENDING, 1, 0, 1)
    assert join_values.read(tokens, host_id, 1, paired.join) == 1
    assert await refusal(rows, pair(pairing, code, Keys())) == (401, "pairing_code_invalid")
    assert await rows.audit(host_id=host_id) == [("host.pairing_code", "created"), ("host.pair", "paired")]
    assert await rows.events(host_id=host_id) == ["host.updated", "host.updated"]
    assert rows.signals.committed_ones == [], "there was nothing to close"


async def test_the_code_is_stored_as_its_hash_only(pairing, rows, owner):
    host_id = await rows.unpaired_host(owner)
    code, _ = await pairing.issue_code(host_id, None)
    ((row, hashed),) = await rows.run("SELECT c::text, code_hash FROM pairing_codes c WHERE host_id = :id", id=host_id)
    assert bytes(hashed) == code_hash(code)
    assert code not in row


async def test_a_newer_code_voids_the_older(pairing, rows, owner):
    host_id = await rows.unpaired_host(owner)
    older, _ = await pairing.issue_code(host_id, owner.caller, await rows.managing(owner, host_id))
    newer, _ = await pairing.issue_code(host_id, owner.caller, await rows.managing(owner, host_id))
    assert await refusal(rows, pair(pairing, older, Keys())) == (401, "pairing_code_invalid")
    assert (await pair(pairing, newer.lower(), Keys())).host.pairing_seq == 1


@pytest.mark.parametrize("column", ["used_at", "expires_at"])
async def test_a_code_that_was_used_or_is_too_old_pairs_nothing(pairing, rows, owner, column):
    host_id = await rows.unpaired_host(owner)
    code, _ = await pairing.issue_code(host_id, owner.caller, await rows.managing(owner, host_id))
    await rows.run(f"UPDATE pairing_codes SET {column} = now() WHERE host_id = :id", id=host_id)
    assert await refusal(rows, pair(pairing, code, Keys())) == (401, "pairing_code_invalid")


@pytest.mark.parametrize("mode", ["confirm", "auto"])
async def test_a_code_does_not_wake_a_host_that_was_retired_meanwhile(rows, tokens, owner, mode):
    pairing, host_id = new_pairing(rows, tokens, mode), await rows.unpaired_host(owner)
    code, _ = await pairing.issue_code(host_id, None)
    async with rows.uow() as unit:
        await unit.of(HostStore).lock(host_id)
        late = asyncio.create_task(pair(pairing, code, Keys()))
        await rows.blocked()
        await unit.of(HostStore).set_state(host_id, HostState.RETIRED)
    with pytest.raises(Problem) as refused:
        await late
    assert refused.value.code == "pairing_code_invalid"
    assert await refusal(rows, pair(pairing, code, Keys())) == (401, "pairing_code_invalid")
    assert (await stored(rows, host_id)).state is HostState.RETIRED


async def test_a_code_that_is_issued_and_one_that_is_used_at_once_do_not_wait_for_each_other(pairing, rows, owner):
    host_id = await rows.unpaired_host(owner)
    code, _ = await pairing.issue_code(host_id, None)
    async with rows.uow() as unit:
        await unit.of(HostStore).lock(host_id)
        used = asyncio.create_task(pair(pairing, code, Keys()))
        await rows.blocked()
        issued = asyncio.create_task(pairing.issue_code(host_id, None))
    outcomes = await asyncio.gather(used, issued, return_exceptions=True)
    assert [each.code for each in outcomes if isinstance(each, Exception)] in ([], ["pairing_code_invalid"])


async def test_a_pairing_that_does_not_prove_the_key_is_refused(pairing, rows, owner):
    host_id = await rows.unpaired_host(owner)
    code, _ = await pairing.issue_code(host_id, owner.caller, await rows.managing(owner, host_id))
    keys, other = Keys(), Keys()
    good = keys.sign(Purpose.HOST_PAIR, code_hash(code), *keys.public)
    swapped = Keys(keys.signing_key, other.channel_key)
    for attempt in (
        pair(pairing, code, keys, origin=ELSEWHERE),
        pair(pairing, code, other, signature=good),
        pair(pairing, code, swapped, signature=good),
        pair(pairing, code, keys, signature=bytes(64)),
        pair(pairing, "00000-00000", keys, signature=good),
        pair(pairing, "00000-00000", keys),
    ):
        assert await refusal(rows, attempt) == (401, "pairing_code_invalid")
    await pair(pairing, code, keys)


async def test_a_key_of_another_host_pairs_nothing_and_spends_no_code(pairing, rows, owner):
    known, host_id = await rows.host(owner), await rows.unpaired_host(owner)
    code, _ = await pairing.issue_code(host_id, owner.caller, await rows.managing(owner, host_id))
    for keys in (known.keys, Keys(channel_key=known.keys.channel_key)):
        assert await refusal(rows, pair(pairing, code, keys)) == (409, "host_key_exists")
    await pair(pairing, code, Keys())


async def test_of_two_machines_with_one_code_exactly_one_is_paired(pairing, rows, owner):
    host_id = await rows.unpaired_host(owner)
    code, _ = await pairing.issue_code(host_id, owner.caller, await rows.managing(owner, host_id))
    results = await asyncio.gather(*(pair(pairing, code, Keys()) for _ in range(3)), return_exceptions=True)
    assert sorted(type(each).__name__ for each in results) == ["Paired", "Problem", "Problem"]


async def test_of_two_hosts_with_one_key_at_once_exactly_one_is_paired(pairing, rows, owner):
    one, other = [await rows.unpaired_host(owner) for _ in range(2)]
    code, _ = await pairing.issue_code(other, None)
    keys = Keys()
    async with rows.uow() as unit:
        await unit.of(HostStore).store_keys(one, *keys.public, HostState.PENDING, 1)
        late = asyncio.create_task(pair(pairing, code, keys))
        await rows.blocked()
    with pytest.raises(Problem) as refused:
        await late
    assert refused.value.code == "host_key_exists"


async def test_owners_and_operators_issue_codes_and_nobody_else(pairing, rows, owner):
    host = await rows.host(owner)
    guest, stranger = await rows.device(), await rows.device()
    await rows.grant(guest, host)
    for other in (guest, stranger):
        assert await refusal(rows, pairing.issue_code(host.id, other.caller, await rows.managing(other, host.id))) == (
            404,
            "host_unknown",
        )
    operator = await rows.device(operator=True)
    await pairing.issue_code(host.id, operator.caller, await rows.managing(operator, host.id))
    await pairing.issue_code(host.id, owner.caller, await rows.managing(owner, host.id))


async def test_there_is_no_code_for_a_host_that_is_not_there_or_retired(pairing, rows, owner):
    retired = await rows.host(owner, state=HostState.RETIRED)
    for host_id in (NOBODY, retired.id):
        assert await refusal(rows, pairing.issue_code(host_id, owner.caller, NOBODY)) == (
            404,
            "host_unknown",
        )
        assert await refusal(rows, pairing.issue_code(host_id, None)) == (404, "host_unknown")


# ---- pairing again --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [HostState.PENDING, HostState.ACTIVE, HostState.DISABLED])
async def test_a_code_for_a_paired_host_is_the_re_pairing(pairing, rows, owner, state):
    host = await rows.host(owner, state=state)
    await rows.run("UPDATE hosts SET disabled_reason = 'duplicate_connection' WHERE id = :id", id=host.id)
    await pairing.issue_code(host.id, owner.caller, await rows.managing(owner, host.id))
    after = await stored(rows, host.id)
    assert (after.paired, after.state, after.disabled_reason) == (False, HostState.PENDING, None)
    assert (after.pairing_seq, after.join_confirmed, after.join_offered, after.boot_id) == (2, 0, 0, None)
    assert rows.signals.committed_ones == [HostClose(host.id)]
    assert await rows.events(host_id=host.id) == ["host.updated"]


async def test_a_re_pairing_ends_the_sessions_of_this_host(pairing, rows, owner):
    host, other = await rows.host(owner), await rows.host(owner)
    live = [await rows.session(owner, host, state) for state in list(SessionState)[:3]]
    closed = await rows.session(owner, host, SessionState.CLOSED)
    elsewhere = await rows.session(owner, other, SessionState.ACTIVE)
    await pairing.issue_code(host.id, owner.caller, await rows.managing(owner, host.id))
    for session in live:
        ended = await rows.record(session.id)
        assert (ended.state, ended.close_reason) == (SessionState.CLOSED, "host_repaired")
        assert await rows.audit(session_id=session.id) == [("terminal.terminate", "host_repaired")]
        assert await rows.events(session_id=session.id) == ["terminal_session.changed"]
    assert await rows.record(closed.id) == closed
    assert await rows.record(elsewhere.id) == elsewhere


async def test_a_disabled_host_without_keys_begins_anew_too(pairing, rows, owner):
    host_id = await rows.unpaired_host(owner)
    await rows.run("UPDATE hosts SET state = 'disabled' WHERE id = :id", id=host_id)
    await pairing.issue_code(host_id, owner.caller, await rows.managing(owner, host_id))
    after = await stored(rows, host_id)
    assert (after.state, after.pairing_seq) == (HostState.PENDING, 2)


async def test_the_same_machine_may_pair_again_with_its_keys(pairing, rows, owner):
    host = await rows.host(owner)
    code, _ = await pairing.issue_code(host.id, owner.caller, await rows.managing(owner, host.id))
    assert (await pair(pairing, code, host.keys)).host.pairing_seq == 2


# ---- confirmation ---------------------------------------------------------------------------------------------------


@pytest.fixture
async def pending(rows, owner):
    return await rows.host(owner, state=HostState.PENDING)


async def test_an_owner_confirms_the_fingerprint(pairing, rows, owner, pending):
    shown = fingerprint(pending.keys.public[1])
    host = await pairing.confirm(owner.caller, pending.id, shown, await rows.managing(owner, pending.id))
    assert (host.id, host.state) == (pending.id, HostState.ACTIVE)
    assert await rows.audit(host_id=pending.id) == [("host.confirm", "confirmed")]
    assert await rows.events(host_id=pending.id) == ["host.updated"]
    before = await rows.content()
    assert await pairing.confirm(owner.caller, pending.id, shown, NOBODY) == host
    assert await rows.content() == before, "confirming twice changes nothing"


@pytest.mark.parametrize("spell", [str.lower, lambda shown: shown[:-1], lambda shown: shown.removeprefix("SHA256:")])
async def test_another_fingerprint_confirms_nothing(pairing, rows, owner, pending, spell):
    shown = fingerprint(pending.keys.public[1])
    assert await refusal(
        rows, pairing.confirm(owner.caller, pending.id, spell(shown), await rows.managing(owner, pending.id))
    ) == (409, "fingerprint_mismatch")
    signing_key = fingerprint(pending.keys.public[0])
    assert await refusal(
        rows, pairing.confirm(owner.caller, pending.id, signing_key, await rows.managing(owner, pending.id))
    ) == (409, "fingerprint_mismatch")


async def test_only_an_owner_confirms(pairing, rows, pending):
    guest, operator = await rows.device(), await rows.device(operator=True)
    await rows.grant(guest, pending)
    shown = fingerprint(pending.keys.public[1])
    for other, answer in ((guest, (404, "host_unknown")), (operator, (403, "owner_required"))):
        unspent = await rows.managing(other, pending.id)
        assert await refusal(rows, pairing.confirm(other.caller, pending.id, shown, unspent)) == answer


async def test_there_is_nothing_to_confirm(pairing, rows, owner, pending):
    shown = fingerprint(pending.keys.public[1])
    unpaired = await rows.unpaired_host(owner)
    disabled = await rows.host(owner, state=HostState.DISABLED)
    active = await rows.host(owner)
    for host_id in (unpaired, disabled.id, active.id):
        assert await refusal(
            rows, pairing.confirm(owner.caller, host_id, shown, await rows.managing(owner, host_id))
        ) == (409, "host_not_pending")
    assert await refusal(rows, pairing.confirm(owner.caller, NOBODY, shown, NOBODY)) == (404, "host_unknown")


async def test_for_a_demonstration_a_pairing_confirms_itself(rows, tokens, owner):
    pairing = new_pairing(rows, tokens, "auto")
    code, _ = await pairing.issue_code(await rows.unpaired_host(owner), None)
    assert (await pair(pairing, code, Keys())).host.state is HostState.ACTIVE
