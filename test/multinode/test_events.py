"""Events on two nodes: who may see it is told, once and in order, whichever node they ask and however often they come again."""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import AsyncExitStack
from uuid import uuid4

import psycopg
import pytest

from bothy_kit.cluster import Cluster, cluster
from bothy_kit.event_reader import Block, EventReader, reading
from bothy_kit.eventually import eventually
from bothy_kit.fake_device import FakeDevice

SHORT = {"presence_interval": "20ms", "comment_interval": "50ms"}


@pytest.fixture
async def two(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=2, events=SHORT) as running:
        yield running


async def begun(reader: EventReader) -> Block:
    """A stream that begins anew; its first presence."""
    assert reader.response.status_code == 200
    assert (await reader.next()).event == "reset"
    return await reader.next()


def logged(blocks: list[Block]) -> list[Block]:
    """Those of the event log."""
    return [each for each in blocks if each.id is not None and each.event != "reset"]


async def test_a_stream_begins_with_a_reset_and_all_presence(two: Cluster):
    robin, host = await two.couple()
    absent = await two.host("lab-2", (await robin.rest("GET", "/me")).body["person_name"])
    await host.connect(two.nodes[1].url)
    await eventually(lambda: two.nodes[0].node.presence.connected(host.host_id))
    async with reading(robin) as reader:
        head = reader.response.headers
        assert head["content-type"] == "text/event-stream; charset=utf-8"
        assert head["x-accel-buffering"] == "no"
        assert "no-store" in head["cache-control"]
        reset, presence = await reader.next(), await reader.next()
        assert (reset.event, reset.data, reader.retry_ms) == ("reset", {}, 2000)
        assert int(reset.id) > 0
        assert presence == Block("presence", {"all": True, "hosts": {str(host.host_id): "online"}}, None)
        assert str(absent.host_id) not in presence.data["hosts"]


async def test_presence_changes_are_told_on_every_node(two: Cluster):
    robin, host = await two.couple()
    stranger = await two.device("Sam")
    async with reading(robin) as here, reading(robin, url=two.nodes[1].url) as there, reading(stranger) as strange:
        for each in (here, there, strange):
            assert (await begun(each)).data == {"all": True, "hosts": {}}
        control = await host.connect(two.nodes[1].url)
        online = {"all": False, "hosts": {str(host.host_id): "online"}}
        for each in (here, there):
            assert (await each.until("presence"))[-1].data == online
        await control.socket.close()
        offline = {"all": False, "hosts": {str(host.host_id): "offline"}}
        for each in (here, there):
            assert (await each.until("presence"))[-1].data == offline
        sam_host = await two.host("sams", "Sam")
        told = await strange.until("host.updated")
        assert {each.event for each in told} == {"host.updated"}, "nothing of Robin's host"
        assert told[-1].data["host_id"] == str(sam_host.host_id)


async def test_the_stream_of_a_revoked_device_ends_at_once_on_every_node(two: Cluster):
    robin, _ = await two.couple()
    name = (await robin.rest("GET", "/me")).body["person_name"]
    phone = await two.another_device(name)
    async with reading(phone) as here, reading(phone, url=two.nodes[1].url) as there, reading(robin) as own:
        for each in (here, there, own):
            await begun(each)
        revoked = await robin.act("manage_account", f"/devices/{phone.device_id}/revoke", url=two.nodes[1].url)
        assert revoked.status == 200
        assert [await here.rest(), await there.rest()] == [[], []]
        told = (await own.until("rights.changed"))[-1]
        assert told.data["device_id"] == str(phone.device_id)
    answer = await phone.rest("GET", "/events")
    assert (answer.status, answer.code) == (401, "token_invalid")


async def test_a_node_that_leaves_sends_its_readers_to_another_one_and_nothing_is_missed(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=2, events=SHORT, server={"drain_notice": "60s"}) as two:
        robin, host = await two.couple()
        async with reading(robin) as reader:
            await begun(reader)
            two.nodes[0].node.drain.begin()
            assert (await reader.rest())[-1] == Block("reconnect", {}, None)
        refused = await robin.rest("GET", "/events")
        assert (refused.status, refused.code, refused.headers["retry-after"]) == (503, "node_leaving", "2")
        assert (await robin.manage("/rename", {"name": "lab-9"}, host_id=host.host_id)).status == 200
        async with reading(robin, url=two.nodes[1].url, after=reader.last_id) as again:
            first = await again.next()
            assert (first.event, first.data["host_id"]) == ("host.updated", str(host.host_id))


async def test_a_database_that_was_away_is_a_reset_and_the_stream_goes_on(two: Cluster):
    robin, host = await two.couple()
    async with reading(robin) as reader:
        await begun(reader)
        async with two.outage():
            pass
        await reader.until("reset")

        async def renamed() -> bool:
            """The pool has connections that were cut."""
            answer = await robin.manage("/rename", {"name": "lab-8"}, host_id=host.host_id)
            return answer.status == 200

        await eventually(renamed)
        assert (await reader.until("host.updated"))[-1].data["host_id"] == str(host.host_id)


async def test_readers_that_wait_hold_no_connection_of_the_database(database_url, tmp_path):
    few, many = {"pool_size": 2}, {"max_per_person": 20}
    async with cluster(database_url, tmp_path, nodes=1, database=few, events=SHORT | many) as one:
        robin, host = await one.couple()
        async with AsyncExitStack() as stack:
            readers = [await stack.enter_async_context(reading(robin)) for _ in range(20)]
            for each in readers:
                await begun(each)
            assert (await robin.manage("/rename", {"name": "lab-7"}, host_id=host.host_id)).status == 200
            for each in readers:
                assert (await each.until("host.updated"))[-1].data["host_id"] == str(host.host_id)


# ---- nothing is lost, nothing comes twice -----------------------------------------------------------------------------

KINDS = ("terminal_session.changed", "host.updated", "rights.changed", "node.changed", "keys.changed")
WRITERS, EACH = 3, 40


async def write(two: Cluster, choice: random.Random, hosts: list[str], sessions: list[str], persons: list[str]):
    """Commit events of every kind about everything, several at once in one unit now and then."""
    url = two.settings.database.url.get_secret_value()
    async with await psycopg.AsyncConnection.connect(url) as connection:
        for _ in range(EACH):
            events = [
                {
                    "type": choice.choice(KINDS),
                    "host_id": choice.choice(hosts),
                    "session_id": choice.choice(sessions),
                    "person_id": choice.choice(persons),
                }
                for _ in range(choice.choice((1, 1, 3)))
            ]
            await connection.execute("SELECT bothy_append('[]', %s, '[]')", [json.dumps(events)])
            await (connection.rollback() if choice.random() < 0.2 else connection.commit())


async def read_all(two: Cluster, device: FakeDevice, choice: random.Random, last: int, *, start: str) -> list[Block]:
    """Events of the log behind ``start`` up to position ``last``, by streams that are cut anywhere and go on elsewhere."""
    seen: list[Block] = []
    after = start
    while int(after) < last:
        async with reading(device, url=choice.choice(two.nodes).url, after=after) as reader:
            for _ in range(choice.randint(1, 30)):
                block = await reader.next()
                assert block.event != "reset"
                seen += [block] if block.id is not None else []
                after = reader.last_id or after
                if int(after) >= last:
                    break
    return seen


@pytest.mark.parametrize("seed", range(2))
async def test_what_a_reader_sees_is_what_was_committed_and_they_may_see(two: Cluster, seed: int):
    choice = random.Random(seed)
    robin, own = await two.couple()
    sam, foreign = await two.couple()
    kim = await two.operator(f"Kim-{seed}")
    await own.connect()
    session = str((await robin.open(own.host_id)).session_id)
    persons = {each: (await each.rest("GET", "/me")).body["person_id"] for each in (robin, sam)}
    hosts, sessions = [str(own.host_id), str(foreign.host_id)], [session, str(uuid4())]
    ((start,),) = await two.sql("SELECT max(position) FROM event_log")

    seeds = [random.Random(choice.random()) for _ in range(WRITERS + 3)]
    async with asyncio.TaskGroup() as tasks:
        writers = [
            tasks.create_task(write(two, seeds[at], hosts, sessions, list(persons.values()))) for at in range(WRITERS)
        ]

        async def last() -> int:
            await asyncio.gather(*writers)
            ((head,),) = await two.sql("SELECT max(position) FROM event_log")
            await two.sql(
                "SELECT bothy_append('[]', %s, '[]')",
                json.dumps([{"type": "host.updated", "host_id": each} for each in hosts]),
            )
            return int(head)

        # They read while it is written, and then to the end, which everybody is told of.
        early = [
            tasks.create_task(read_all(two, each, seeds[WRITERS + at], start + 40, start=str(start)))
            for at, each in enumerate((robin, sam, kim))
        ]
        head = await last()
    seen = {}
    for at, device in enumerate((robin, sam, kim)):
        blocks = early[at].result()
        after = blocks[-1].id if blocks else str(start)
        seen[device] = blocks + await read_all(two, device, seeds[WRITERS + at], head + 1, start=after)

    rows = await two.sql(
        "SELECT position, type, host_id::text, session_id::text, person_id::text FROM event_log"
        " WHERE position > %s ORDER BY position",
        start,
    )

    def expected(device: FakeDevice, mine: str | None) -> list[tuple[str, str]]:
        operator = device is kim
        return [
            (str(position), kind)
            for position, kind, host_id, session_id, person_id in rows
            if {
                "terminal_session.changed": operator or host_id == mine or (device is robin and session_id == session),
                "host.updated": operator or host_id == mine,
                "rights.changed": operator or host_id == mine or person_id == persons.get(device),
                "node.changed": operator,
                "keys.changed": False,
            }[kind]
        ]

    for device, mine in ((robin, hosts[0]), (sam, hosts[1]), (kim, None)):
        told = [(each.id, each.event) for each in seen[device]]
        wanted = expected(device, mine)
        assert told == wanted[: len(told)]
        assert len(wanted) - len(told) <= 1, "of the last two events a reader may have stopped before the second"
        assert len(told) > 30
