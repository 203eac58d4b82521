"""Every fault of a link does what its name says, on a stream and on PostgreSQL, and leaves nothing."""

import asyncio
from contextlib import asynccontextmanager

import psycopg
import pytest

from bothy_kit.eventually import eventually, footprint
from bothy_kit.links import database_link, link


@pytest.fixture
async def echo():
    """A server that answers what it is told; its address."""

    async def answer(reader, writer):
        while data := await reader.read(100):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()
    server.close()


@asynccontextmanager
async def dialled(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def said(reader, writer, word):
    writer.write(word)
    async with asyncio.timeout(10):
        return await reader.readexactly(len(word))


async def test_a_link_carries_both_ways_and_passes_an_end_on(echo):
    async with link(echo) as way, dialled(way.port) as (reader, writer):
        assert await said(reader, writer, b"to the end") == b"to the end"
        writer.write(b"last")
        writer.write_eof()
        assert await reader.read() == b"last"


async def test_what_is_paused_flows_on_after_the_healing(echo):
    async with link(echo) as way, dialled(way.port) as (reader, writer):
        await said(reader, writer, b"before")
        way.pause()
        writer.write(b"meanwhile")
        answer = asyncio.create_task(reader.readexactly(9))
        async with dialled(way.port) as other:  # taken, and as mute
            assert await asyncio.wait([answer], timeout=0.1) == (set(), {answer})
            await way.heal()
            assert await answer == b"meanwhile"
            assert await said(*other, b"too") == b"too"


async def test_a_cut_resets_what_is_open_and_takes_what_comes(echo):
    async with link(echo) as way, dialled(way.port) as (reader, writer):
        await said(reader, writer, b"before")
        way.cut()
        with pytest.raises(ConnectionResetError):
            await reader.read()
        async with dialled(way.port) as other:
            assert await said(*other, b"after") == b"after"


async def test_a_link_that_refuses_keeps_what_is_open_and_its_port(echo):
    async with link(echo) as way, dialled(way.port) as opened:
        await said(*opened, b"before")
        await way.refuse()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", way.port)
        assert await said(*opened, b"still") == b"still"
        await way.heal()
        async with dialled(way.port) as other:
            assert await said(*other, b"again") == b"again"


async def heard(connection):
    return [each.payload async for each in connection.notifies(timeout=0.2, stop_after=1)]


async def test_a_fault_may_fall_on_one_application_of_a_database(database_url):
    async with database_link(database_url) as (way, url):
        ear = await psycopg.AsyncConnection.connect(url, autocommit=True, application_name="ear")
        other = await psycopg.AsyncConnection.connect(url, autocommit=True, application_name="other")
        async with ear, other:
            await ear.execute("LISTEN news")
            await other.execute("LISTEN news")
            way.drop_signals("ear")
            await other.execute("NOTIFY news, 'one'")
            assert (await heard(other), await heard(ear)) == (["one"], [])
            assert (await (await ear.execute("SELECT 1")).fetchone()) == (1,)
            await way.heal()
            way.pause("ear")
            await other.execute("NOTIFY news, 'two'")
            assert (await heard(other), await heard(ear)) == (["two"], [])
            await way.heal()
            assert await heard(ear) == ["two"]
            way.cut("ear")
            with pytest.raises(psycopg.OperationalError):
                await ear.execute("SELECT 1")
            await other.execute("SELECT 1")


@pytest.mark.parametrize("fault", ["none", "pause", "cut", "refuse"])
async def test_a_link_leaves_no_task_and_no_socket(echo, fault):
    before = footprint()
    async with link(echo) as way, dialled(way.port) as opened:
        await said(*opened, b"before")
        if fault == "pause":
            way.pause()
            opened[1].write(b"held back")
        elif fault == "cut":
            way.cut()
        elif fault == "refuse":
            await way.refuse()
    await eventually(lambda: footprint() == before)  # the server that was dialled sees its end a moment later
