"""The readers of a node: who is told what, from the first block to the last, and what becomes of the others."""

import asyncio

import pytest

from bothy_server.events.app.feed import QUIET, Told
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import Event

SOON = 0.5


@pytest.fixture
async def robin(rows):
    return await rows.device()


@pytest.fixture
async def host(rows, robin):
    return await rows.host(robin)


async def test_a_reader_begins_with_a_reset_and_all_presence_it_may_see(rows, node, robin, host):
    node.present = {host.id: "online", (await rows.host(await rows.device())).id: "online"}
    async with node.reading(robin) as reader:
        assert await reader.next() == Told("reset", {}, await node.head())
        assert await reader.next() == Told("presence", {"all": True, "hosts": {str(host.id): "online"}})


async def test_an_event_is_told_to_who_may_see_it(rows, node, robin, host):
    sam, kim = await rows.device(), await rows.device(operator=True)
    async with node.reading(robin) as of_robin, node.reading(sam) as of_sam, node.reading(kim) as of_kim:
        start = max([await each.begun() for each in (of_robin, of_sam, of_kim)])
        session = await rows.session(sam, host)
        changed = Event("terminal_session.changed", host_id=host.id, session_id=session.id)
        one, two, _ = await node.emit(changed, Event("host.updated", host_id=host.id), Event("keys.changed"))
        await node.tell(start)
        for reader, positions in ((of_robin, [one, two]), (of_sam, [one]), (of_kim, [one, two])):
            assert [(await reader.next()).position for _ in positions] == positions
            assert list(reader.feed.take()) == []


async def test_what_is_both_read_and_told_is_told_once(node, robin, host, changes):
    start = await node.head()
    async with node.reading(robin, after=start) as reader:
        (one, two) = await node.emit(changes(host.id), changes(host.id))
        await node.tell(start)
        (three,) = await node.emit(changes(host.id))
        await node.tell(two)
        told = []
        while three not in [each.position for each in told if each.type == "host.updated"]:
            told.append(await reader.next())
    assert [each.position for each in told if each.type == "host.updated"] == [one, two, three]


async def test_a_quiet_reader_hears_how_far_it_is_or_a_comment(node, robin, clock):
    async with node.reading(robin) as reader:
        start = await reader.begun()
        (one,) = await node.emit(Event("keys.changed"))
        await node.tell(start)
        for expected in (Told(None, {}, one), QUIET, QUIET):
            following = asyncio.create_task(reader.next())
            await clock.wait_for_timer()
            clock.advance(10)
            assert await following == expected


async def test_a_gap_resets_every_reader_and_they_go_on_behind_it(node, robin, host, changes):
    async with node.reading(robin) as reader:
        start = await reader.begun()
        (missed,) = await node.emit(changes(host.id))
        await node.feeds.on_gap()
        await node.tell(start)  # it is behind the reset already
        (two,) = await node.emit(changes(host.id))
        await node.tell(missed)
        assert await reader.next() == Told("reset", {}, missed)
        assert (await reader.next()).position == two


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE devices SET revoked_at = now() WHERE id = :id",
        "UPDATE persons SET disabled_at = now() WHERE id = (SELECT person_id FROM devices WHERE id = :id)",
    ],
)
async def test_the_stream_of_who_may_not_act_any_more_ends_with_nothing(rows, node, robin, host, changes, statement):
    async with node.reading(robin) as reader:
        start = await reader.begun()
        await node.emit(changes(host.id))
        await rows.run(statement, id=robin.id)
        await node.emit(Event("rights.changed", person_id=robin.person_id, device_id=robin.id))
        await node.tell(start)
        assert await reader.rest() == []


async def test_a_browser_whose_login_is_over_is_told_nothing_more(rows, node):
    browser = await rows.browser()
    host = await rows.host(browser)
    async with node.reading(browser) as reader:
        start = await reader.begun()
        await rows.run("UPDATE devices SET login_until = now() WHERE id = :id", id=browser.id)
        await node.emit(Event("host.updated", host_id=host.id))
        await node.tell(start)
        assert await reader.rest() == []


async def test_who_lost_a_right_is_told_so_and_nothing_of_the_host(rows, node, changes):
    owner, sam = await rows.device(), await rows.device()
    host = await rows.host(owner)
    await rows.grant(sam, host)
    async with node.reading(sam) as reader:
        start = await reader.begun()
        await rows.run("DELETE FROM host_grants WHERE person_id = :id", id=sam.person_id)
        lost, _ = await node.emit(Event("rights.changed", host_id=host.id, person_id=sam.person_id), changes(host.id))
        await node.tell(start)
        told = await reader.next()
        assert (told.type, told.position) == ("rights.changed", lost)
        assert told.data | {"at": None} == {
            "person_id": sam.person_id,
            "device_id": None,
            "host_id": host.id,
            "at": None,
        }
        assert list(reader.feed.take()) == []


async def test_a_slow_reader_is_cut_and_the_others_go_on(node, robin, host, changes):
    async with node.reading(robin) as slow, node.reading(robin) as quick:
        start = await slow.begun()
        await quick.begun()
        for _ in range(5):
            (position,) = await node.emit(changes(host.id))
            await node.tell(start)
            start = position
            assert (await quick.next()).position == position
        assert await slow.rest() == []
        assert node.feeds.slow == 0
    assert (node.feeds.slow, node.feeds.count) == (1, 0)


async def test_there_are_only_so_many_readers(rows, node, robin):
    sam, kim = await rows.device(), await rows.device()
    async with node.reading(robin), node.reading(robin) as second:
        with pytest.raises(Problem, match="feed_limit") as raised:
            node.feeds.open(robin.caller)
        assert (raised.value.status, raised.value.retry_after_s) == (429, 2)
        async with node.reading(sam):
            with pytest.raises(Problem, match="feed_limit"):
                node.feeds.open(kim.caller)
            node.feeds.close(second.feed)
            node.feeds.close(second.feed)
            async with node.reading(kim):
                assert node.feeds.count == 3


async def test_a_drain_sends_every_reader_elsewhere(node, robin, host, changes):
    async with node.reading(robin) as reader:
        start = await reader.begun()
        (one,) = await node.emit(changes(host.id))
        await node.tell(start)
        node.feeds.drain()
        assert [(each.type, each.position) for each in await reader.rest()] == [
            ("host.updated", one),
            ("reconnect", None),
        ]
        with pytest.raises(Problem, match="node_leaving") as raised:
            node.feeds.open(robin.caller)
        assert (raised.value.status, raised.value.retry_after_s) == (503, 2)


async def test_a_database_that_is_away_at_the_start_ends_the_stream(rows, node, robin):
    async with node.reading(robin) as reader:
        rows.away = True
        assert await reader.rest() == []


async def test_nobody_is_asked_while_nobody_reads(rows, node):
    await node.emit(Event("keys.changed"))
    units = rows.units
    await node.tell(0)
    assert rows.units == units + 1, "the test's own"


# ---- presence -------------------------------------------------------------------------------------------------------


@pytest.fixture
async def following(node):
    running = asyncio.create_task(node.feeds.run())
    yield
    running.cancel()


async def test_changes_of_presence_are_told_to_who_sees_the_host(rows, node, robin, host, clock, following):
    foreign, sam = await rows.host(await rows.device()), await rows.device()
    async with node.reading(robin) as of_robin, node.reading(sam) as of_sam:
        await of_robin.begun()
        await of_sam.begun()
        for word in ("online", "lost", "offline"):
            node.present = {} if word == "offline" else {host.id: word, foreign.id: word}
            told = asyncio.create_task(of_robin.next())
            await clock.wait_for_timer(1)
            clock.advance(1)
            assert await told == Told("presence", {"all": False, "hosts": {str(host.id): word}})
        assert list(of_sam.feed.take()) == []


async def test_a_change_while_the_database_is_away_is_told_later(rows, node, robin, host, clock, following):
    async with node.reading(robin) as reader:
        await reader.begun()
        node.present, rows.away = {host.id: "online"}, True
        told = asyncio.create_task(reader.next())
        await clock.wait_for_timer(1)
        units = rows.units
        clock.advance(1)
        await clock.wait_for_timer(1)
        assert rows.units == units + 1
        assert not told.done()
        rows.away = False
        clock.advance(1)
        assert (await told).data["hosts"] == {str(host.id): "online"}


async def test_presence_costs_nothing_while_nobody_reads_and_begins_anew(rows, node, robin, host, clock, following):
    await clock.wait_for_timer(1)
    node.present, units = {host.id: "online"}, rows.units
    clock.advance(1)
    await clock.wait_for_timer(1)
    assert rows.units == units
    async with node.reading(robin) as reader:
        await reader.begun()
        clock.advance(1)
        await clock.wait_for_timer(1)
        assert list(reader.feed.take()) == [], "that was in the first one"
