"""The example edge while the nodes behind it change: how many sessions move, and what an open terminal feels."""

from __future__ import annotations

import asyncio
import re
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bothy_kit.edge_client import UPGRADE, Stream, ask, connection
from bothy_kit.eventually import eventually
from bothy_kit.nginx import Edge, Edit, Node, edge, running_edge
from bothy_kit.processes import reserved_port
from bothy_kit.responder import Responder, responders
from bothy_server.kernel.ids import new_id
from bothy_wire.limits import CONTROL_PATH, data_path, stream_path

NAMES = tuple(f"api-{number}" for number in range(1, 7))
_PER_CONNECTION = 500  # nginx closes a connection after keepalive_requests


def session_ids(count: int) -> list[str]:
    return [str(new_id(datetime.now(UTC))) for _ in range(count)]


async def placed(url: str, ids: Sequence[str], path: Callable[[str], str] = stream_path) -> list[str]:
    """The node of each id."""
    found = []
    for first in range(0, len(ids), _PER_CONNECTION):
        async with connection(url) as stream:
            for each in ids[first : first + _PER_CONNECTION]:
                status, answer = await ask(stream, path(each))
                assert status == 200
                found.append(answer["bothy-node"])
    return found


async def splits(url: str, ids: Sequence[str]) -> int:
    """How many ids have their two paths on different nodes, asked at the same time."""
    device, host = await asyncio.gather(placed(url, ids), placed(url, ids, data_path))
    return sum(left != right for left, right in zip(device, host, strict=True))


@pytest.mark.parametrize("count", [2, 5])
async def test_both_paths_of_many_sessions_meet_and_the_shares_are_even(count: int) -> None:
    ids = session_ids(2_000)
    async with responders(*NAMES[:count]) as nodes:
        with edge([node.node for node in nodes]) as url:
            assert await splits(url, ids) == 0
            shares = Counter(await placed(url, ids))
    assert set(shares) == set(NAMES[:count])
    assert max(shares.values()) < 1.5 * min(shares.values())


@pytest.mark.parametrize(
    ("before", "after", "low", "high"), [(2, 3, 0.27, 0.41), (5, 6, 0.11, 0.23), (5, 4, 0.14, 0.27)]
)
async def test_a_change_of_the_nodes_moves_no_more_than_a_share(
    before: int, after: int, low: float, high: float
) -> None:
    ids = session_ids(2_000)
    async with responders(*NAMES[: max(before, after)]) as responding:
        nodes = [node.node for node in responding]
        with running_edge(nodes[:before]) as running:
            old = await placed(running.url, ids)
            await changed_to(nodes[:after], running)
            new = await placed(running.url, ids)
    moved = [(left, right) for left, right in zip(old, new, strict=True) if left != right]
    assert low < len(moved) / len(ids) < high
    changed = set(NAMES[min(before, after) : max(before, after)])
    assert all(left in changed or right in changed for left, right in moved), "a session moved between nodes that stay"


async def changed_to(nodes: Sequence[Node], running: Edge) -> None:
    """Reload, and wait for the end of the old workers: nobody holds a socket, so they have nothing to wait for."""
    before = running.workers()
    await asyncio.to_thread(running.reload, nodes)
    await asyncio.to_thread(running.wait_for_end, before)


async def test_a_reload_under_load_fails_no_handshake_and_keeps_open_sockets(tmp_path: Path) -> None:
    async with responders(*NAMES[:3]) as responding, AsyncExitStack() as stack:
        nodes = [node.node for node in responding]
        running = stack.enter_context(running_edge(nodes[:2], log=tmp_path / "log"))
        terminals = []
        for each in session_ids(20):
            terminals.append(await stack.enter_async_context(connection(running.url)))
            assert (await ask(terminals[-1], stream_path(each), UPGRADE))[0] == 101
        done = asyncio.Event()
        shaken: list[int] = []

        async def load() -> None:
            while not done.is_set():
                async with connection(running.url) as stream:
                    shaken.append((await ask(stream, stream_path(session_ids(1)[0]), UPGRADE))[0])

        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(load())
            for count in (3, 2, 3, 2, 3):
                await asyncio.to_thread(running.reload, nodes[:count])
                for terminal in terminals:
                    assert await echoed(terminal)
            done.set()
        assert len(shaken) > 20
        assert set(shaken) == {101}
        assert "/stream" not in (tmp_path / "log").read_text()


async def echoed(stream: Stream) -> bool:
    reader, writer = stream
    writer.write(b"still here")
    async with asyncio.timeout(20):
        return await reader.readexactly(10) == b"still here"


@contextmanager
def refusing() -> Iterator[Node]:
    with socket.socket() as dead:
        dead.bind(("127.0.0.1", 0))  # bound, not listening: refuses, and nobody else takes the port
        yield NAMES[2], *dead.getsockname()


@contextmanager
def hanging() -> Iterator[Node]:
    """A node whose kernel answers nobody any more: its queue of connections is full."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.socket() as first, socket.socket() as second:
        for each in (first, second):
            each.setblocking(False)
            each.connect_ex(full.getsockname())
        yield NAMES[2], *full.getsockname()


def rewrite(folder: Path, pattern: str, written: str | Callable[[re.Match[str]], str]) -> None:
    conf = folder / "nginx.conf"
    text, count = re.subn(pattern, written, conf.read_text())
    assert count
    conf.write_text(text)


def quick(folder: Path) -> None:
    """A hung node shows after a tenth of the time."""
    rewrite(folder, r"proxy_connect_timeout \S+;", "proxy_connect_timeout 200ms;")


@pytest.mark.parametrize(("fault", "count"), [(refusing, 300), (hanging, 60)])
async def test_a_failing_node_splits_no_session(
    fault: Callable[[], Iterator[Node]], count: int, tmp_path: Path
) -> None:
    ids = session_ids(count)
    async with responders(*NAMES[:2]) as living:
        nodes = [node.node for node in living]
        with fault() as failing, running_edge([*nodes, failing], log=tmp_path / "log", edit=quick) as running:
            assert await splits(running.url, ids) == 0
    log = (tmp_path / "log").read_text()
    assert not any(each in log for each in ids)


async def test_a_node_that_returns_has_its_sessions_again() -> None:
    ids = session_ids(300)
    async with responders(*NAMES[:3]) as responding:
        nodes = [node.node for node in responding]
        with refusing() as failing, running_edge([*nodes[:2], failing]) as running:
            before = await placed(running.url, ids)
            assert set(before) == set(NAMES[:2])
            await changed_to(nodes, running)
            assert await splits(running.url, ids) == 0
            assert set(await placed(running.url, ids)) == set(NAMES[:3])


@asynccontextmanager
async def listening(node: Responder) -> AsyncIterator[None]:
    """The node for the block; at its end it is gone with all its connections, and its port refuses."""
    server = await asyncio.start_server(node.accept, "127.0.0.1", node.port, backlog=512)
    try:
        yield
    finally:
        server.close()
        await node.close()


async def test_a_node_that_comes_and_goes_has_both_sides_of_its_sessions_or_neither() -> None:
    """Terminals stay open, so no answer that ends tells the edge that a node is well again."""
    async with responders(*NAMES[:2]) as living, AsyncExitStack() as terminals:
        flapping = Responder(NAMES[2], terminals.enter_context(reserved_port()))
        url = terminals.enter_context(edge([node.node for node in (*living, flapping)]))

        async def opened(count: int) -> Counter[str]:
            """The nodes of sessions whose two sides were dialled and stay."""
            nodes: Counter[str] = Counter()
            for each in session_ids(count):
                found = []
                for path in (stream_path(each), data_path(each)):
                    status, answer = await ask(await terminals.enter_async_context(connection(url)), path, UPGRADE)
                    assert status == 101
                    found.append(answer["bothy-node"])
                assert found[0] == found[1]
                nodes[found[0]] += 1
            return nodes

        for _ in range(3):
            assert set(await opened(40)) == set(NAMES[:2])
            async with listening(flapping):
                assert set(await opened(40)) == set(NAMES[:3])


async def test_nodes_that_were_all_away_serve_when_they_are_back() -> None:
    """Streams at once, everything else behind the two seconds of ``fail_timeout`` and not behind nginx's own ten."""
    stream_of_one = stream_path(session_ids(1)[0])
    async with AsyncExitStack() as stack:
        nodes = [Responder(name, stack.enter_context(reserved_port())) for name in NAMES[:2]]
        url = stack.enter_context(edge([node.node for node in nodes]))
        async with connection(url) as stream:
            assert {(await ask(stream, path))[0] for path in (stream_of_one, CONTROL_PATH, "/api/v1/hosts")} == {502}
        async with listening(nodes[0]), listening(nodes[1]), connection(url) as stream:
            assert (await ask(stream, stream_of_one))[0] == 200

            async def dials() -> bool:
                return (await ask(stream, CONTROL_PATH))[0] == 200

            async with asyncio.timeout(8):
                await eventually(dials)


_FASTER = 600
"""A second of these tests stands for ten minutes of the edge."""


def faster(folder: Path) -> None:
    """Every silence that the edge allows, in the same ratio."""
    rewrite(
        folder,
        r"proxy_(read|send)_timeout (\d+)s",
        lambda found: f"proxy_{found[1]}_timeout {int(found[2]) * 1000 // _FASTER}ms",
    )


def too_short(folder: Path) -> None:
    """The minute that nginx allows when nothing is written."""
    rewrite(folder, "_timeout 43260s", "_timeout 60s")
    faster(folder)


async def ends_within(stream: Stream, within_s: float) -> bool:
    try:
        return await asyncio.wait_for(stream[0].read(1), within_s) == b""
    except TimeoutError:
        return False


@pytest.mark.parametrize("path", [stream_path, data_path])
async def test_a_terminal_that_is_quiet_for_ten_minutes_stays(path: Callable[[str], str]) -> None:
    async with responders("api-1") as nodes:
        with running_edge([node.node for node in nodes], edit=faster) as running:
            async with connection(running.url) as terminal:
                assert (await ask(terminal, path(session_ids(1)[0]), UPGRADE))[0] == 101
                assert not await ends_within(terminal, 1.0)
                assert await echoed(terminal)


@pytest.mark.parametrize(("edit", "path"), [(too_short, stream_path("0" * 8)), (faster, CONTROL_PATH)])
async def test_a_shorter_timeout_would_cut_it(edit: Edit, path: str) -> None:
    """The control connection has the heartbeats of its host, so the edge may end it when those stay away."""
    path = path.replace("00000000", session_ids(1)[0])
    async with responders("api-1") as nodes:
        with running_edge([node.node for node in nodes], edit=edit) as running:
            async with connection(running.url) as silent:
                assert (await ask(silent, path, UPGRADE))[0] == 101
                assert await ends_within(silent, 20.0)
