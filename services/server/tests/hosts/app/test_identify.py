"""Who is on a new control connection, and in which order two connections of a host stand."""

import asyncio
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from bothy_kit.cluster import ORIGIN
from bothy_kit.manual_clock import ManualClock
from bothy_kit.rows import Keys
from bothy_server.hosts.app import join_values
from bothy_server.hosts.app.identify import Admitted, Identify, Passed, Refused, Waits
from bothy_server.hosts.app.ports import HostStore
from bothy_server.hosts.domain.host import HostState
from bothy_server.kernel.ids import time_of
from bothy_server.kernel.unit import StorageUnavailable
from bothy_wire.close_codes import CloseCode
from bothy_wire.frames import HostIdentify
from bothy_wire.signing import Purpose

CHALLENGE = bytes(range(32))
NOBODY = UUID(int=1)


@pytest.fixture
def identify(rows, tokens):
    return Identify(rows.uow, tokens, rows.clock, ["https://second.example.com", ORIGIN])


@pytest.fixture
async def host(rows):
    """Its row has confirmed join value 2 (``Rows.host``)."""
    return await rows.host()


def frame(host, tokens, *, counter=2, pairing_seq=1, keys=None, origin=ORIGIN, signed=None, **changed):
    """An identify; ``changed`` fields stand in it, ``signed`` fields in its signature only."""
    fields = {
        "host_id": host.id,
        "boot_id": host.boot_id,
        "version": 1,
        "join": join_values.offer(tokens, host.id, pairing_seq, counter),
    } | changed
    proven = fields | (signed or {})
    challenge = proven.pop("challenge", CHALLENGE)
    words = (str(proven[name]) for name in ("host_id", "boot_id", "version", "join"))
    signature = (keys or host.keys).sign(Purpose.HOST_IDENTIFY, challenge, *words, origin=origin)
    return HostIdentify(signature=signature, **fields)


async def stored(rows, host):
    async with rows.uow() as unit:
        return await unit.of(HostStore).get(host.id)


async def refused(identify, rows, wanted):
    """The code of a refusal, which wrote nothing."""
    before = await rows.content()
    outcome = await identify.identify(CHALLENGE, wanted)
    assert await rows.content() == before
    assert isinstance(outcome, Refused)
    return outcome.code


async def test_a_host_that_proves_its_key_is_admitted(identify, rows, tokens, host):
    boot_id = uuid4()
    outcome = await identify.identify(CHALLENGE, frame(host, tokens, boot_id=boot_id))
    after = await stored(rows, host)
    assert outcome == Admitted(after.last_conn_id, 1, join_values.offer(tokens, host.id, 1, 3))
    assert (after.boot_id, after.join_confirmed, after.join_offered) == (boot_id, 2, 3)
    assert after.last_seen_at is not None


async def test_a_signature_for_anything_else_is_refused(identify, rows, tokens, host):
    other = await rows.host()
    for bad in (
        frame(host, tokens, keys=Keys()),
        frame(host, tokens, keys=other.keys),
        frame(host, tokens, origin="https://other.example.com"),
        frame(host, tokens, signed={"challenge": bytes(32)}),
        frame(host, tokens, signed={"boot_id": NOBODY}),
        frame(host, tokens, signed={"host_id": other.id}),
        frame(host, tokens, signed={"version": 2}),
        frame(host, tokens, signed={"join": "1"}),
        frame(host, tokens, host_id=other.id),
        frame(host, tokens, host_id=NOBODY),
    ):
        assert await refused(identify, rows, bad) is CloseCode.IDENTIFY_REFUSED


async def test_a_host_without_keys_is_refused(identify, rows, tokens, host):
    await rows.run("UPDATE hosts SET signing_key = NULL, channel_key = NULL WHERE id = :id", id=host.id)
    assert await refused(identify, rows, frame(host, tokens)) is CloseCode.IDENTIFY_REFUSED


@pytest.mark.parametrize(
    ("state", "reason", "code"),
    [
        ("disabled", None, CloseCode.HOST_DISABLED),
        ("disabled", "duplicate_connection", CloseCode.DUPLICATE_CONNECTION),
        ("retired", None, CloseCode.HOST_DISABLED),
    ],
)
async def test_a_host_that_may_not_connect_is_told_why_once_it_proved_its_key(
    identify, rows, tokens, host, state, reason, code
):
    await rows.run(
        "UPDATE hosts SET state = :state, disabled_reason = :reason WHERE id = :id",
        id=host.id,
        state=state,
        reason=reason,
    )
    assert await refused(identify, rows, frame(host, tokens)) is code
    assert await refused(identify, rows, frame(host, tokens, keys=Keys())) is CloseCode.IDENTIFY_REFUSED


async def test_a_host_that_waits_for_its_owner_is_not_written_down(identify, rows, tokens):
    host = await rows.host(state=HostState.PENDING)
    before = await rows.content()
    assert await identify.identify(CHALLENGE, frame(host, tokens)) == Waits(1)
    assert await rows.content() == before


async def test_a_join_value_that_is_not_this_hosts_is_refused(identify, rows, tokens, host):
    other = await rows.host()
    for join in ("7.x.AAAA", join_values.offer(tokens, other.id, 1, 2), join_values.offer(tokens, host.id, 2, 2)):
        assert await refused(identify, rows, frame(host, tokens, join=join)) is CloseCode.IDENTIFY_REFUSED


async def test_a_join_value_that_was_passed_admits_nobody(identify, rows, tokens, host):
    before = await rows.content()
    outcome = await identify.identify(CHALLENGE, frame(host, tokens, counter=1))
    assert await rows.content() == before
    assert outcome == Passed(1)


async def test_a_database_that_is_away_is_no_refusal(identify, rows, tokens, host):
    rows.away = True
    with pytest.raises(StorageUnavailable):
        await identify.identify(CHALLENGE, frame(host, tokens))


# ---- the order of connections (D1) ----------------------------------------------------------------------------------


@pytest.mark.parametrize("behind", [timedelta(0), timedelta(seconds=5), timedelta(days=1)])
async def test_a_later_connection_is_later_whatever_the_node_clocks_say(rows, tokens, host, behind):
    ahead = Identify(rows.uow, tokens, rows.clock, [ORIGIN])
    late = Identify(rows.uow, tokens, ManualClock(rows.clock.now() - behind), [ORIGIN])
    first = await ahead.identify(CHALLENGE, frame(host, tokens))
    second = await late.identify(CHALLENGE, frame(host, tokens))
    third = await ahead.identify(CHALLENGE, frame(host, tokens))
    assert time_of(first.conn_id) < time_of(second.conn_id) < time_of(third.conn_id)
    assert (await stored(rows, host)).last_conn_id == third.conn_id


async def test_connections_at_once_have_an_order(identify, rows, tokens, host):
    outcomes = await asyncio.gather(*(identify.identify(CHALLENGE, frame(host, tokens)) for _ in range(4)))
    instants = {time_of(each.conn_id) for each in outcomes}
    assert len(instants) == 4
    assert time_of((await stored(rows, host)).last_conn_id) == max(instants)
    assert (await stored(rows, host)).join_offered == 6
