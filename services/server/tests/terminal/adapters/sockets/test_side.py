"""Stream and data sockets of a real node, from the handshake until the switchboard has the side."""

import asyncio
from uuid import UUID

import pytest
import pytest_asyncio

from bothy_kit.cluster import ORIGIN, cluster
from bothy_kit.sockets import FakeSide
from bothy_wire.frames import DataHello, HostSessionOpen, SideAccepted, SidePaired, StreamHello
from bothy_wire.limits import DATA_SUBPROTOCOL, STREAM_SUBPROTOCOL, data_path, stream_path

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.usefixtures("nobody_waits")]
NODE_SETTINGS = {"terminal": {"max_pending_per_node": 1}}
NOBODY = "0199aaaa-0000-7000-8000-00000000000a"
BOTH = pytest.mark.parametrize(
    ("path", "subprotocol", "hello"),
    [(stream_path, STREAM_SUBPROTOCOL, StreamHello), (data_path, DATA_SUBPROTOCOL, DataHello)],
)


@pytest_asyncio.fixture(loop_scope="module")
async def opened(node):
    """A device, its connected host, and a session in ``opening``."""
    return await open_session(node)


async def open_session(node):
    device, host = await node.couple()
    control = await host.connect()
    stream = await device.open(host.host_id)
    await control.expect(HostSessionOpen)
    return device, host, stream


@pytest_asyncio.fixture(loop_scope="module")
async def nobody_waits(node):
    """The node has room when a test begins; sides of earlier tests may still be leaving."""
    async with asyncio.timeout(10):
        while node.nodes[0].node.switchboard.sides:  # noqa: ASYNC110 - nobody announces it
            await asyncio.sleep(0.001)


async def test_two_sides_meet_and_bytes_pass(opened):
    device, host, stream = opened
    client = await device.dial(stream)
    data = await host.dial(stream.session_id)
    await client.expect(SidePaired)
    await data.expect(SidePaired)
    await client.send(b"keys")
    assert await data.receive() == b"keys"
    await data.send(b"screen")
    assert await client.receive() == b"screen"
    await client.close()
    await data.close()


@BOTH
async def test_a_challenge_is_for_one_socket(node, path, subprotocol, hello):
    url = node.nodes[0].url + path(NOBODY)
    sides = [await FakeSide.dial(url, subprotocol) for _ in range(2)]
    challenges = {(await side.expect(hello)).challenge for side in sides}
    assert len(challenges) == 2
    assert {len(each) for each in challenges} == {32}
    for side in sides:
        await side.close()


@BOTH
@pytest.mark.parametrize("offered", [None, "bothy.control.v1"])
async def test_a_socket_without_our_subprotocol_is_told_which(node, path, subprotocol, hello, offered):
    side = await FakeSide.dial(node.nodes[0].url + path(NOBODY), offered)
    closed = await side.closed()
    assert (closed.code, closed.reason) == (4113, f"subprotocol {subprotocol} expected")


@BOTH
@pytest.mark.parametrize("session_id", [NOBODY.upper(), NOBODY.replace("-", ""), "x", "%2e"])
async def test_only_the_canonical_spelling_of_a_session_is_one(node, path, subprotocol, hello, session_id):
    """Two spellings could lead to two nodes."""
    side = await FakeSide.dial(node.nodes[0].url + path(session_id), subprotocol)
    assert (await side.closed()).code == 4101


@BOTH
@pytest.mark.parametrize(
    ("first", "code"),
    [
        ("{}", 4105),
        ("[]", 4105),
        (b"binary", 4105),
        ('{"type":"side.ready"}', 4105),
        ("x" * 17_000, 1009),
        (["x" * 9000, "x" * 9000], 1009),
    ],
)
async def test_the_first_message_identifies_and_is_small(node, path, subprotocol, hello, first, code):
    side = await FakeSide.dial(node.nodes[0].url + path(NOBODY), subprotocol)
    await side.expect(hello)
    await side.socket.send(first)
    assert (await side.closed()).code == code


@BOTH
async def test_a_side_that_leaves_instead_of_identifying_leaves_nothing(node, path, subprotocol, hello):
    side = await FakeSide.dial(node.nodes[0].url + path(NOBODY), subprotocol)
    await side.expect(hello)
    await side.close()
    assert node.nodes[0].node.switchboard.sides == 0


@pytest.mark.parametrize(("origin", "welcome"), [(ORIGIN, True), ("http://evil.example.com", False), ("null", False)])
async def test_web_pages_of_other_origins_open_no_stream(opened, origin, welcome):
    device, _, stream = opened
    side = await FakeSide.dial(device.url + stream_path(stream.session_id), STREAM_SUBPROTOCOL, origin=origin)
    if welcome:
        await side.expect(StreamHello)
        await side.close()
        return
    closed = await side.closed()
    assert (closed.code, closed.reason) == (4101, "this web page may not open a terminal")


async def test_a_proof_that_is_none_is_refused(opened):
    device, host, stream = opened
    assert (await (await device.identify(stream, origin="http://other.example.com")).closed()).code == 4101
    assert (await (await host.identify_data(UUID(NOBODY))).closed()).code == 4101
    swapped = await host.identify_data(stream.session_id, named=UUID(NOBODY))
    assert (await swapped.closed()).code == 4101


async def test_sides_beyond_the_bound_are_told_to_come_later(node, opened):
    other_device, _, other_stream = await open_session(node)
    device, host, stream = opened
    waiting = await device.dial(stream)
    late = await other_device.identify(other_stream)
    closed = await late.closed()
    assert (closed.code, closed.reason) == (1013, "too many sides wait here")
    data = await host.identify_data(stream.session_id)
    await data.expect(SideAccepted)
    await waiting.expect(SidePaired)
    await waiting.close()
    await data.close()


async def test_a_side_that_vanishes_while_it_is_checked_is_dropped(node, opened):
    device, _, stream = opened
    side = await device.identify(stream)
    side.cut()
    again = await device.dial(stream)
    await again.close()


async def test_silence_and_a_database_that_is_away(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=1, wire={"identify_timeout": "500ms"}) as one:
        device, host, stream = await open_session(one)
        url = one.nodes[0].url
        silent = [
            await FakeSide.dial(url + data_path(NOBODY), DATA_SUBPROTOCOL),
            await FakeSide.dial(url + stream_path(NOBODY), STREAM_SUBPROTOCOL),
        ]
        assert [(await side.closed()).code for side in silent] == [4104, 4104]
        async with one.outage():
            assert (await (await device.identify(stream)).closed()).code == 1013
            assert (await (await host.identify_data(stream.session_id)).closed()).code == 1013
