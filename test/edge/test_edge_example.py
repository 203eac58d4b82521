"""The example edge as shipped, run by a real nginx in front of tiny nodes that tell what reached them."""

from __future__ import annotations

import asyncio
import re
import resource
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bothy_kit.edge_client import UPGRADE, ask, connection
from bothy_kit.nginx import SHIPPED, NginxError, edge, running_edge
from bothy_kit.responder import Responder, responders
from bothy_server.kernel.ids import new_id
from bothy_server.platform.settings import Terminal
from bothy_wire.limits import CONTROL_PATH, data_path, stream_path

ID = "0190a0b0-c1d2-7e3f-8a4b-5c6d7e8f9a0b"
TERMINAL = Terminal()
NAMES = ("api-1", "api-2", "api-3")


async def test_edge_example_hash_routes_both_stream_paths() -> None:
    ids = [str(new_id(datetime.now(UTC))) for _ in range(2_000)]

    async def nodes_of(url: str, path) -> list[str]:
        found = []
        for first in range(0, len(ids), 500):  # nginx closes a connection after keepalive_requests
            async with connection(url) as stream:
                found += [(await ask(stream, path(each)))[1]["bothy-node"] for each in ids[first : first + 500]]
        return found

    async with responders(*NAMES) as nodes:
        with edge([node.node for node in nodes]) as url:
            device, host = await asyncio.gather(nodes_of(url, stream_path), nodes_of(url, data_path))
    splits = [each for each, left, right in zip(ids, device, host, strict=True) if left != right]
    assert splits == []
    shares = Counter(device)
    assert set(shares) == set(NAMES)
    assert max(shares.values()) < 1.6 * min(shares.values())


async def test_edge_example_keeps_the_sessions_of_a_node_that_stays() -> None:
    ids = [str(new_id(datetime.now(UTC))) for _ in range(600)]
    async with responders(*NAMES) as nodes:

        async def placed(present: list[Responder]) -> dict[str, str]:
            with edge([node.node for node in present]) as url:
                async with connection(url) as stream:
                    return {each: (await ask(stream, stream_path(each)))[1]["bothy-node"] for each in ids}

        before, after = await placed(nodes), await placed(nodes[:2])
    assert {each for each in ids if before[each] != after[each]} == {each for each in ids if before[each] == "api-3"}


async def test_edge_example_split_sends_the_two_sides_to_different_nodes() -> None:
    async with responders("api-1", "api-2") as nodes:
        with edge([node.node for node in nodes], "split") as url:
            for path, name in ((stream_path(ID), "api-1"), (data_path(ID), "api-2")) * 3:
                async with connection(url) as stream:
                    status, answer = await ask(stream, path, UPGRADE)
                    assert (status, answer["bothy-node"]) == (101, name)


SPELLINGS = {
    "upper case": ID.upper(),
    "no dashes": ID.replace("-", ""),
    "braces": f"{{{ID}}}",
    "urn": f"urn:uuid:{ID}",
    "encoded letter": ID.replace("a", "%61"),
    "encoded dash": ID.replace("-", "%2d"),
    "encoded slash": f"{ID}%2f",
    "encoded newline": f"{ID}%0a",
    "encoded nul": f"{ID}%00",
    "parameter": f"{ID};a=1",
    "space": f"%20{ID}",
    "empty": "",
    "dot": f"./{ID}",
    "dots": f"x/../{ID}",
    "doubled slash": f"/{ID}",
    "slash after": f"{ID}/",
    "cut": ID[:-1],
    "longer": f"{ID}0",
    "not a UUID": "s1",
}
TAILS = ("/", "/.", "//", ";a=1", "%0A", "%0a%0A", "%2f", "?", "?a=1", "#x", "/x", "%20", ".", ".json")


def spellings() -> Iterator[str]:
    for canonical in (stream_path(ID), data_path(ID)):
        yield from (canonical.replace(ID, written) for written in SPELLINGS.values())
        yield from (canonical + tail for tail in TAILS)
        yield canonical.replace("/sessions", "//sessions")
        yield canonical.replace("/sessions", "/./sessions")
        yield canonical.replace("stream", "strea%6d")
        yield canonical.replace("api", "%61pi")
        yield "/" + canonical
        yield canonical.upper()
    yield from (CONTROL_PATH.replace("hosts", "./hosts"), f"/{CONTROL_PATH}", CONTROL_PATH.replace("c", "%63"))
    yield from (f"{CONTROL_PATH}?a=1", f"{CONTROL_PATH}/", f"{CONTROL_PATH};a=1", f"{CONTROL_PATH}%0a")


async def test_edge_example_never_upgrades_another_spelling(tmp_path: Path) -> None:
    """A second spelling of one id could reach a second node: it gets 400, or an answer of a node without an upgrade."""
    async with responders(*NAMES) as nodes:
        with edge([node.node for node in nodes], log=tmp_path / "log") as url:
            for path in spellings():
                async with connection(url) as stream:
                    status, _ = await ask(stream, path, UPGRADE)
                assert status in {200, 400}, path
        reached = [request for node in nodes for request in node.requests]
    assert reached
    assert [request.path for request in reached if "upgrade" in request.headers] == []
    assert "0190a0b0" not in (tmp_path / "log").read_text().lower()


@pytest.mark.parametrize(
    "path", [stream_path(ID.upper()), f"{stream_path(ID)}/", f"{data_path(ID)}%0A", f"/{data_path(ID)}"]
)
async def test_edge_example_refuses_by_itself(path: str) -> None:
    async with responders("api-1") as nodes:
        with edge([node.node for node in nodes]) as url:
            async with connection(url) as stream:
                assert (await ask(stream, path))[0] == 400
        assert nodes[0].requests == []


@pytest.mark.parametrize("path", [stream_path(ID), data_path(ID), CONTROL_PATH])
async def test_edge_example_upgrades_the_three_socket_paths(path: str) -> None:
    async with responders("api-1", "api-2") as nodes:
        with edge([node.node for node in nodes]) as url:
            async with connection(url) as (reader, writer):
                status, _ = await ask((reader, writer), path, UPGRADE)
                assert status == 101
                for size in (1, 100, 200_000):
                    sent = bytes(size)
                    writer.write(sent)
                    assert await reader.readexactly(size) == sent


@pytest.mark.parametrize("path", ["/", "/api/v1/hosts", f"/api/v1/terminal/sessions/{ID}", "/api/v1/events", "/ws"])
async def test_edge_example_strips_the_upgrade_elsewhere(path: str) -> None:
    async with responders("api-1") as nodes:
        with edge([node.node for node in nodes]) as url:
            async with connection(url) as stream:
                assert (await ask(stream, path, UPGRADE))[0] == 200
        assert "upgrade" not in nodes[0].requests[0].headers


async def test_edge_example_passes_a_stream_path_without_an_upgrade_to_the_same_node() -> None:
    """The probe of a doctor: the node that would carry the session answers, and says its name."""
    async with responders(*NAMES) as nodes:
        with edge([node.node for node in nodes]) as url:
            for path in (stream_path(ID), data_path(ID)):
                async with connection(url) as plain, connection(url) as socket_:
                    (_, probe), (_, upgraded) = await ask(plain, path), await ask(socket_, path, UPGRADE)
                assert probe["bothy-node"] == upgraded["bothy-node"]


@pytest.mark.parametrize("path", [stream_path(ID), data_path(ID), CONTROL_PATH, "/api/v1/hosts"])
async def test_edge_example_says_who_called(path: str) -> None:
    sent = {"X-Forwarded-For": "192.0.2.7", "X-Forwarded-Proto": "https", "Authorization": "Bearer x"}
    async with responders("api-1") as nodes:
        with edge([node.node for node in nodes]) as url:
            async with connection(url) as stream:
                _, answer = await ask(stream, path, sent)
        headers = nodes[0].requests[0].headers
    assert headers["host"] == "bothy.example.com:8443"
    assert headers["x-forwarded-for"] == "192.0.2.7, 127.0.0.1"
    assert headers["x-forwarded-proto"] == "https"
    assert headers["authorization"] == "Bearer x"
    assert answer["server"] == "nginx"


async def test_edge_example_walks_on_from_a_dead_node_without_a_split(tmp_path: Path) -> None:
    ids = [str(new_id(datetime.now(UTC))) for _ in range(100)]
    with socket.socket() as dead:
        dead.bind(("127.0.0.1", 0))  # bound, not listening: refuses at once, and nobody else takes the port
        async with responders("api-1", "api-2") as nodes:
            with edge([*(n.node for n in nodes), ("api-3", *dead.getsockname())], log=tmp_path / "log") as url:
                async with connection(url) as stream:
                    for each in ids:
                        (status, device), (_, host) = (
                            await ask(stream, stream_path(each)),
                            await ask(stream, data_path(each)),
                        )
                        assert status == 200
                        assert device["bothy-node"] == host["bothy-node"]
    log = (tmp_path / "log").read_text()
    assert not any(each in log for each in ids)


async def test_edge_example_without_a_living_node_answers_502_and_logs_no_id(tmp_path: Path) -> None:
    with socket.socket() as dead:
        dead.bind(("127.0.0.1", 0))
        with edge([("api-1", *dead.getsockname())], log=tmp_path / "log") as url:
            for path in (stream_path(ID), data_path(ID), CONTROL_PATH, f"/api/v1/terminal/sessions/{ID}"):
                async with connection(url) as stream:
                    assert (await ask(stream, path))[0] == 502
    assert ID not in (tmp_path / "log").read_text()


def test_edge_driver_shows_what_nginx_wrote() -> None:
    with pytest.raises(NginxError, match="host not found"), edge([("api-1", "no.such.host.invalid", 1)]):
        pass


def directives(text: str) -> dict[str, list[str]]:
    """The directives of each block of a configuration; a block inside another is named ``outer > inner``."""
    found: dict[str, list[str]] = {"": []}
    path: list[str] = []
    for each in re.findall(r'((?:"[^"]*"|[^"{};#])*)([{};])', re.sub(r"#.*", "", text)):
        words, end = " ".join(each[0].split()), each[1]
        if end == "{":
            path.append(words)
            found.setdefault(" > ".join(path), [])
        elif end == "}":
            path.pop()
        else:
            found[" > ".join(path)].append(words)
    return found


def test_edge_example_config() -> None:
    conf = directives((SHIPPED / "nginx.conf").read_text())
    upstreams = directives((SHIPPED / "upstreams.conf").read_text())
    http, server = conf["http"], conf["http > server"]
    assert (SHIPPED / "listen.conf").read_text() == "listen 8080;\n"

    assert {"access_log off", "error_log stderr crit", "server_tokens off"} <= set(http)
    assert not any(
        each.startswith(("access_log", "error_log")) for name in conf if name not in {"", "http"} for each in conf[name]
    )
    assert {
        "client_max_body_size 0",
        "proxy_http_version 1.1",
        "proxy_buffering off",
        "proxy_request_buffering off",
    } <= set(server)
    written = [each.split()[1] for each in (*conf[""], *http) if each.startswith("pid ") or "_temp_path" in each]
    assert len(written) == 6
    assert not any("/" in path for path in written), "everything nginx writes lies below one folder"
    assert not any(each.startswith("user ") for each in conf[""])

    streams, control, rest = (
        conf[name] for name in conf if name.startswith("http > server > location") and " if " not in name
    )
    assert "proxy_pass http://bothy_terminal_stream" in streams
    assert "proxy_pass http://bothy_api" in control
    assert "proxy_pass http://bothy_api" in rest
    shared = {
        "proxy_set_header Host $http_host",
        "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for",
        "proxy_set_header X-Forwarded-Proto $http_x_forwarded_proto",
    }
    upgrade = {"proxy_set_header Upgrade $http_upgrade", "proxy_set_header Connection $bothy_connection"}
    assert shared | upgrade <= set(streams)
    assert shared | upgrade <= set(control)
    assert shared | {'proxy_set_header Upgrade ""'} <= set(rest)

    hashed, plain = upstreams["upstream bothy_terminal_stream"], upstreams["upstream bothy_api"]
    assert "hash $bothy_terminal_session consistent" in hashed
    assert "keepalive 0" in hashed
    assert not any(each.startswith("hash") for each in plain)
    assert all(any(each.startswith("zone ") for each in block) for block in (hashed, plain))
    streams, others = ([each.split() for each in block if each.startswith("server ")] for block in (hashed, plain))
    assert [name for _, name, *_ in streams] == [name for _, name, *_ in others]
    assert {tuple(options) for _, _, *options in streams} == {("weight=10", "max_fails=0")}
    assert {tuple(options) for _, _, *options in others} == {("weight=10", "fail_timeout=2s")}


def test_edge_example_config_is_what_nginx_reads() -> None:
    """``make docker`` compares the same in the container."""
    with running_edge([("api", "127.0.0.1", 1), ("api-2", "127.0.0.1", 2)]) as running:
        files = {Path(path).name: text for path, text in running.files().items()}
    assert set(files) == {path.name for path in SHIPPED.glob("*.conf")}
    assert files["nginx.conf"] == (SHIPPED / "nginx.conf").read_text()


@pytest.mark.parametrize("path", [CONTROL_PATH, "/api/v1/hosts", "/api/v1/events"])
async def test_edge_example_pins_nothing_but_the_stream_paths(path: str) -> None:
    async with responders(*NAMES) as nodes:
        with edge([node.node for node in nodes]) as url:
            async with connection(url) as stream:
                assert {(await ask(stream, path))[1]["bothy-node"] for _ in range(30)} == set(NAMES)


@pytest.mark.parametrize(
    ("block", "keys", "expected_s"),
    [
        ("location ~", "terminal.idle_timeout + terminal.idle_grace", TERMINAL.idle_timeout + TERMINAL.idle_grace),
        (
            "server {",
            "terminal.host_heartbeat_interval x terminal.host_heartbeat_miss_limit",
            TERMINAL.host_heartbeat_interval * TERMINAL.host_heartbeat_miss_limit,
        ),
    ],
)
def test_edge_example_timeouts_are_the_defaults_of_the_server(block: str, keys: str, expected_s: float) -> None:
    """Each number stands beside the keys it is made from; the defaults of the server give the same number."""
    text = (SHIPPED / "nginx.conf").read_text().partition(block)[2]
    for name in ("proxy_read_timeout", "proxy_send_timeout"):
        line = re.search(rf"{name} (\d+)s; # (.*)", text)
        assert line is not None
        assert line[2].startswith(keys)
        assert int(line[1]) == expected_s


async def test_edge_example_holds_1500_idle_sockets_and_still_serves() -> None:
    """Each takes two connections at the edge; the defaults of nginx and of the system would not do."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8_192), hard))
    try:
        async with responders(*NAMES) as nodes, AsyncExitStack() as stack:
            url = stack.enter_context(edge([node.node for node in nodes]))
            for _ in range(1_500):
                stream = await stack.enter_async_context(connection(url))
                assert (await ask(stream, stream_path(new_id(datetime.now(UTC))), UPGRADE))[0] == 101
            async with connection(url) as stream:
                assert (await ask(stream, "/api/v1/hosts"))[0] == 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
