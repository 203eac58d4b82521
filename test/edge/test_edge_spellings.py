"""Any spelling of a session's path, through the real edge: it is the one way to its node, or it is no socket."""

from __future__ import annotations

import asyncio
import posixpath
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import unquote_to_bytes, urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bothy_kit.edge_client import UPGRADE
from bothy_kit.nginx import edge
from bothy_kit.responder import responders
from bothy_server.kernel.ids import new_id
from bothy_wire.limits import data_path, stream_path

PATHS = (stream_path, data_path)
IDS = tuple(str(new_id(datetime.now(UTC))) for _ in range(20))
STREAM = re.compile(rb"/api/v1/(?:terminal|hosts)/sessions/[0-9a-fA-F-]{36}/stream")
_LONGER_THAN_A_LINE = 40_000
_WITHIN_S = 20


@dataclass(frozen=True, slots=True)
class Put:
    """Something written in place of one character of the path, or before it."""

    at: int
    text: str
    """``{0}`` is the character, ``{1:02x}`` its number."""

    def on(self, path: str) -> str:
        at = self.at % len(path)
        return path[:at] + self.text.format(path[at], ord(path[at])) + path[at + 1 :]


@dataclass(frozen=True, slots=True)
class PutAtSlash:
    """Something written in place of one slash of the path."""

    at: int
    text: str

    def on(self, path: str) -> str:
        slashes = [at for at, each in enumerate(path) if each == "/"]
        at = slashes[self.at % len(slashes)]
        return path[:at] + self.text + path[at + 1 :]


@dataclass(frozen=True, slots=True)
class Behind:
    text: str

    def on(self, path: str) -> str:
        return path + self.text


@dataclass(frozen=True, slots=True)
class Upper:
    at: int

    def on(self, path: str) -> str:
        at = self.at % len(path)
        return path[:at] + path[at].upper() + path[at + 1 :]


Change = Put | PutAtSlash | Behind | Upper

places = st.integers(0, 200)
changes: st.SearchStrategy[Change] = st.one_of(
    st.builds(Put, places, st.sampled_from(["%{1:02x}", "%{1:02X}", "%25{1:02x}", "{0}\0", "%00{0}", "%"])),
    st.builds(
        PutAtSlash,
        places,
        st.sampled_from(["//", "///", "/./", "/x/../", "/%2e/", "/x/%2E%2e/", "/../", "%2f", "\\", "/;a/", "/ /"]),
    ),
    st.builds(Upper, places),
    st.builds(
        Behind,
        st.sampled_from(
            ["/", "//", "/.", "/..", "?", "?a=1", "#", "#part", ";a=1", "%00", "\0", "%0a", "%0D%0A", "%20", " ", "%2f"]
        ),
    ),
    st.builds(Behind, st.sampled_from(["?", "/", "/./", "%2e"]).map(lambda each: each * _LONGER_THAN_A_LINE)),
    st.builds(PutAtSlash, places, st.just("/" * _LONGER_THAN_A_LINE)),
)


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    node: str | None
    """Who answered; None when the edge did."""


def asked(url: str, target: str) -> Answer:
    """What a request for a socket gets; the target is sent byte for byte."""
    address = urlsplit(url)
    lines = [f"GET {target} HTTP/1.1", "Host: relay.example.com", *(f"{k}: {v}" for k, v in UPGRADE.items()), "", ""]
    with socket.create_connection((address.hostname, address.port), _WITHIN_S) as connection:
        connection.sendall("\r\n".join(lines).encode("latin-1"))
        with connection.makefile("rb") as answer:
            status = int(answer.readline().split()[1])
            head = dict(line.lower().split(b": ", 1) for line in iter(answer.readline, b"\r\n"))
    node = head.get(b"bothy-node")
    return Answer(status, None if node is None else node.decode().strip())


def meant(target: str) -> bool:
    """Whether a reader who decodes and cleans the path takes it for one of the stream paths."""
    path = unquote_to_bytes(re.split(r"[?#]", target, maxsplit=1)[0])
    return bool(STREAM.fullmatch(posixpath.normpath(re.sub(rb"/+", b"/", path))))


@pytest.mark.parametrize("count", [2, 5])
async def test_no_spelling_splits_the_sides_of_a_session(count: int) -> None:
    async with responders(*(f"api-{number}" for number in range(1, count + 1))) as nodes:
        with edge([node.node for node in nodes]) as url:

            @settings(max_examples=300, deadline=None)
            @given(st.sampled_from(IDS), st.lists(changes, max_size=3), st.lists(changes, max_size=3))
            @example(IDS[0], [], [])
            @example(IDS[1], [Behind("/")], [])
            @example(IDS[2], [PutAtSlash(4, "//")], [PutAtSlash(4, "/./")])
            @example(IDS[4], [], [Behind(" ")])
            @example(IDS[3], [Put(30, "%{1:02x}")], [Put(30, "%{1:02X}")])
            def spelt(session_id: str, device: list[Change], host: list[Change]) -> None:
                home = asked(url, stream_path(session_id))
                assert home.status == 101
                for make, made in zip(PATHS, (device, host), strict=True):
                    canonical = target = make(session_id)
                    for change in made:
                        target = change.on(target)
                    answer = asked(url, target)
                    if target.rstrip(" ") == canonical:  # any number of spaces may stand before the version
                        assert answer == home
                    elif meant(target):
                        assert (answer.status // 100, answer.node) == (4, None)
                    else:
                        assert answer.status != 101

            await asyncio.to_thread(spelt)
        sockets = {request.path for node in nodes for request in node.requests if "upgrade" in request.headers}
    assert sockets <= {make(each) for make in PATHS for each in IDS}


@pytest.mark.parametrize("path", PATHS)
async def test_a_target_with_the_name_of_the_edge_is_the_path_alone(path: Callable[[str], str]) -> None:
    async with responders("api-1", "api-2", "api-3") as nodes:
        with edge([node.node for node in nodes]) as url:
            for each in IDS:
                plain = await asyncio.to_thread(asked, url, path(each))
                assert await asyncio.to_thread(asked, url, f"http://relay.example.com{path(each)}") == plain
