"""The statements of the sessions' rows make exactly the moves that ``domain/session.py`` allows, and count under a lock."""

import asyncio

import pytest

from bothy_server.kernel.rates import Rate
from bothy_server.terminal.app.ports import Live, NewSession, SessionStore
from bothy_server.terminal.domain.session import TRANSITIONS, SessionState, sources

OPENING, ACTIVE, DETACHED, CLOSED = SessionState

STATEMENTS = {
    "start": (lambda store, row: store.start(row.id, row.host_id), {(OPENING, ACTIVE)}),
    "detach": (lambda store, row: store.detach(row.id, row.paired_seq), {(ACTIVE, DETACHED)}),
    "pair": (lambda store, row: store.pair(row.id, row.attach_seq), {(DETACHED, ACTIVE)}),
    "attach": (lambda store, row: store.attach(row.id, row.device_id), set()),
    "close": (lambda store, row: store.close([row.id], "idle"), {(each, CLOSED) for each in sources(CLOSED)}),
    "close of an opening": (
        lambda store, row: store.close([row.id], "open_failed", "start_timeout", opening=True),
        {(OPENING, CLOSED)},
    ),
}


@pytest.fixture
async def device(rows):
    return await rows.device()


@pytest.fixture
async def host(rows, device):
    return await rows.host(device)


def test_the_statements_make_every_move_and_no_other():
    made = set().union(*(moves for _, moves in STATEMENTS.values()))
    assert made == {(move.source, move.target) for move in TRANSITIONS}


@pytest.mark.parametrize("before", list(SessionState))
@pytest.mark.parametrize("statement", STATEMENTS)
async def test_a_statement_moves_from_its_states_only(rows, device, host, statement, before):
    act, moves = STATEMENTS[statement]
    row = await rows.session(device, host, before)
    async with rows.uow() as unit:
        await act(unit.of(SessionStore), row)
    after = await rows.record(row.id)
    targets = [target for source, target in moves if source is before]
    assert [after.state] == (targets or [before])


@pytest.mark.parametrize("statement", STATEMENTS)
async def test_nothing_writes_to_a_closed_row(rows, device, host, statement):
    row = await rows.session(device, host, CLOSED)
    async with rows.uow() as unit:
        await STATEMENTS[statement][0](unit.of(SessionStore), row)
    assert await rows.record(row.id) == row


@pytest.mark.parametrize(
    ("statement", "before"),
    [
        (name, state)
        for name in ("start", "detach")
        for state in SessionState
        if (name, state) not in {("start", OPENING), ("detach", ACTIVE)}
    ],
)
async def test_a_loser_wrote_nothing_and_hears_so(rows, device, host, statement, before):
    row = await rows.session(device, host, before)
    async with rows.uow() as unit:
        assert await STATEMENTS[statement][0](unit.of(SessionStore), row) is None
    assert await rows.record(row.id) == row


@pytest.mark.parametrize(("paired", "ends"), [(False, True), (True, False)])
async def test_only_a_session_that_never_met_fails_to_open_in_time(rows, device, host, paired, ends):
    row = await rows.session(device, host, paired=paired)
    async with rows.uow() as unit:
        ended = await unit.of(SessionStore).close(
            [row.id], "open_failed", "open_timeout", never_paired=True, opening=True
        )
    assert [each.id for each in ended] == ([row.id] if ends else [])
    assert ((await rows.record(row.id)).state is CLOSED) is ends


async def test_a_detached_of_an_older_pairing_changes_nothing(rows, device, host):
    row = await rows.session(device, host, ACTIVE)
    async with rows.uow() as unit:
        await unit.of(SessionStore).pair(row.id, row.attach_seq)
        assert await unit.of(SessionStore).detach(row.id, row.paired_seq) is None
    assert (await rows.record(row.id)).state is ACTIVE


async def test_a_host_starts_its_own_sessions_only(rows, device, host):
    row, other = await rows.session(device, host), await rows.host(device)
    async with rows.uow() as unit:
        assert await unit.of(SessionStore).start(row.id, other.id) is None
    assert await rows.record(row.id) == row


async def counts(unit, device, host):
    """Sessions of the person and on the host."""
    return tuple(live.count for live in await unit.of(SessionStore).live(device.person_id, host.id))


async def test_the_first_end_by_age_is_told_with_the_counts(rows, device, host):
    other = await rows.device()
    await rows.grant(other, host)
    for who, of, ends_in_s in ((device, host, 5000), (other, host, 3000), (device, await rows.host(device), 1000)):
        row = await rows.session(who, of)
        ending = (
            "UPDATE terminal_sessions SET expires_at = clock_timestamp() + make_interval(secs => :s) WHERE id = :id"
        )
        await rows.run(ending, id=row.id, s=ends_in_s)
    await rows.session(device, host, SessionState.CLOSED)
    nobody = await rows.device()
    async with rows.uow() as unit:
        of_person, on_host = await unit.of(SessionStore).live(device.person_id, host.id)
        assert of_person == Live(2, pytest.approx(1000, abs=60))
        assert on_host == Live(2, pytest.approx(3000, abs=60))
        none = await unit.of(SessionStore).live(nobody.person_id, rows.new_id())
        assert none == (Live(0, 0), Live(0, 0))


async def test_one_session_more_is_too_early_until_the_rate_has_room(rows, device, host):
    """Whatever became of the sessions, and nobody else's count."""
    other = await rows.device()
    await rows.grant(other, host)
    for age_s, who in ((3601, device), (3000, device), (1200, device), (60, other), (0, device)):
        row = await rows.session(who, host, SessionState.CLOSED if age_s == 1200 else SessionState.OPENING)
        aged = "UPDATE terminal_sessions SET opened_at = clock_timestamp() - make_interval(secs => :s) WHERE id = :id"
        await rows.run(aged, id=row.id, s=age_s)
    async with rows.uow() as unit:
        store = unit.of(SessionStore)
        waits = [await store.opened_too_early(device.person_id, Rate(count, 3600)) for count in (1, 2, 3, 4)]
    assert waits == [pytest.approx(3600, abs=60), pytest.approx(2400, abs=60), pytest.approx(600, abs=60), 0]


@pytest.mark.parametrize("same", ["person", "host"])
async def test_counts_wait_for_a_unit_that_may_add_one(rows, device, host, same):
    """Two nodes that counted at once would both find room for the last session."""
    other_device = device if same == "person" else await rows.device()
    other_host = host if same == "host" else await rows.host(other_device)

    async def count():
        async with rows.uow() as unit:
            return await counts(unit, other_device, other_host)

    new = NewSession(host.id, device.person_id, device.id, "shell", "alex-shell", 3600)
    async with rows.uow() as unit:
        assert await counts(unit, device, host) == (0, 0)
        counting = asyncio.create_task(count())
        await rows.blocked()
        await unit.of(SessionStore).add(rows.new_id(), new)
    assert await counting == ((1, 0) if same == "person" else (0, 1))


async def test_counts_of_others_do_not_wait(rows, device, host):
    other_device = await rows.device()
    other_host = await rows.host(other_device)
    async with rows.uow() as unit:
        await counts(unit, device, host)

        async def count():
            async with rows.uow() as unit:
                return await counts(unit, other_device, other_host)

        assert await asyncio.create_task(count()) == (0, 0)


async def test_opens_across_persons_and_hosts_never_wait_for_one_another_in_a_circle(rows):
    devices = [await rows.device() for _ in range(3)]
    hosts = [await rows.host(*devices) for _ in range(3)]

    async def open_one(device, host):
        async with rows.uow() as unit:
            found = await counts(unit, device, host)
            new = NewSession(host.id, device.person_id, device.id, "shell", "alex-shell", 3600)
            await unit.of(SessionStore).add(rows.new_id(), new)
        return found

    async with asyncio.TaskGroup() as tasks:
        opened = [tasks.create_task(open_one(device, host)) for device in devices for host in hosts]
    for column in (0, 1):
        assert sorted(task.result()[column] for task in opened) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


async def test_a_row_comes_back_as_it_was_written(rows, device, host):
    row = await rows.session(device, host, ACTIVE)
    assert (row.host_id, row.person_id, row.device_id) == (host.id, device.person_id, device.id)
    assert (row.profile, row.session_user, row.boot_id, row.paired_seq) == ("shell", "alex-shell", host.boot_id, 1)
