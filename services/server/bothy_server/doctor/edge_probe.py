"""Asks the edge. Everything here blocks, each wait is bounded, and nothing is asked that needs a person."""

from __future__ import annotations

import http.client
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit
from uuid import UUID

import msgspec
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from bothy_server.doctor.edge_judgement import Answers, Held
from bothy_server.platform.edge_probe import Seen
from bothy_wire.limits import (
    CONTROL_PATH,
    CONTROL_SUBPROTOCOL,
    DATA_SUBPROTOCOL,
    STREAM_SUBPROTOCOL,
    data_path,
    stream_path,
)

WAIT_S = 5.0
"""Longest wait for one answer of a healthy edge. No key: it only bounds how long the doctor takes to see a fault."""

PASS_S = 60.0
"""Longest time for one pass over all made-up sessions; a healthy edge needs a second."""

ANSWER_BYTES = 64 * 1024
"""Most that is read of one answer, or of one line of it: what stands at the edge's address may be anything."""

FORGED = "203.0.113.7"
"""What the doctor claims to be, as a stranger could: an address for documentation."""


class _Frame(msgspec.Struct):
    type: str


class EdgeError(Exception):
    """The edge did not answer as a node behind it does; the message says what came."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Where to dial. ``source`` is the address to dial from, empty for the system's choice."""

    url: str
    source: str = ""

    @contextmanager
    def _connection(self, timeout_s: float = WAIT_S) -> Iterator[http.client.HTTPConnection]:
        made, source = urlsplit(self.url), (self.source, 0) if self.source else None
        connection = (
            http.client.HTTPSConnection(made.netloc, timeout=timeout_s, source_address=source)
            if made.scheme == "https"
            else http.client.HTTPConnection(made.netloc, timeout=timeout_s, source_address=source)
        )
        try:
            yield connection
        except (OSError, http.client.HTTPException, UnicodeError) as error:  # the last: a name that DNS cannot hold
            raise EdgeError(f"{self.url}: {type(error).__name__} {error}") from error
        finally:
            connection.close()

    def reach(self) -> str:
        """Connect, with TLS where the address says so, and ask nothing; the address that was reached."""
        with self._connection() as connection:
            connection.connect()
        return self.url

    def answers(self, ids: Sequence[UUID]) -> list[Answers]:
        """Who answers for made-up sessions. Each pass has an order of its own, so that turns taken do not look stable."""
        stream, data, again = (self._nodes(ids, path) for path in (stream_path, data_path, stream_path))
        return [Answers(stream[each], data[each], again[each]) for each in ids]

    def _nodes(self, ids: Sequence[UUID], path_of: Callable[[object], str]) -> dict[UUID, str]:
        found: dict[UUID, str] = {}
        deadline = time.monotonic() + PASS_S
        order = random.sample(ids, len(ids))
        for start in range(0, len(order), 50):  # nginx closes a connection after keepalive_requests
            with self._connection() as connection:
                for each in order[start : start + 50]:
                    if time.monotonic() > deadline:
                        raise EdgeError(f"{self.url} answered {len(found)} of {len(ids)} requests in {PASS_S:.0f} s")
                    connection.request("GET", path_of(each))
                    answer = connection.getresponse()
                    answer.read(ANSWER_BYTES)
                    if not answer.isclosed():
                        raise EdgeError(f"{self.url} answers a stream path with more than {ANSWER_BYTES} bytes")
                    node = answer.getheader("Bothy-Node")
                    if answer.status != 426 or node is None:
                        raise EdgeError(f"{self.url} answered {answer.status} on a stream path, a node answers 426")
                    found[each] = node
        return found

    def accepted(self, paths: Sequence[str]) -> list[str]:
        """The spellings that became a socket, or that led to a node that took them for a stream path."""
        taken = []
        for path in paths:
            with self._connection() as connection:
                connection.putrequest("GET", path)
                for name, value in _UPGRADE.items():
                    connection.putheader(name, value)
                connection.endheaders()
                if connection.getresponse().status in {101, 426}:
                    taken.append(path)
        return taken

    def refused(self, session_id: UUID) -> dict[str, str]:
        """The socket paths that do not lead to a node's hello, with what came."""
        wrong = {}
        for path, subprotocol in (
            (stream_path(session_id), STREAM_SUBPROTOCOL),
            (data_path(session_id), DATA_SUBPROTOCOL),
            (CONTROL_PATH, CONTROL_SUBPROTOCOL),
        ):
            try:
                with connect(
                    self.url.replace("http", "ws", 1) + path,
                    subprotocols=[Subprotocol(subprotocol)],
                    compression=None,
                    open_timeout=WAIT_S,
                    close_timeout=1,
                    proxy=None,
                ) as socket_:
                    hello = msgspec.json.decode(socket_.recv(WAIT_S), type=_Frame)
                if not hello.type.endswith(".hello"):
                    wrong[path] = "another first frame"
            except (OSError, WebSocketException, msgspec.DecodeError) as error:
                wrong[path] = str(error) or type(error).__name__
        return wrong

    def seen(self, session_id: UUID, token: str) -> Seen:
        """What the node of a session saw of our request."""
        with self._connection() as connection:
            connection.request("GET", stream_path(session_id), headers=_signed(token))
            return _seen(connection.getresponse())

    def held(self, session_id: UUID, token: str, hold_s: float) -> Held:
        """How an answer with a silence of ``hold_s`` in it passes."""
        early_s = last_s = None
        began = time.monotonic()
        status = 200
        with suppress(EdgeError), self._connection(hold_s + WAIT_S) as connection:  # the parts that did not come tell
            connection.request("GET", stream_path(session_id), headers=_signed(token))
            answer = connection.getresponse()
            status = answer.status
            if answer.readline(ANSWER_BYTES) and answer.readline(ANSWER_BYTES):
                early_s = time.monotonic() - began
            if answer.readline(ANSWER_BYTES):
                last_s = time.monotonic() - began
        _check_told(status)
        return Held(early_s, last_s, hold_s)


_UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "Ym90aHktZG9jdG9yLWtleQ==",
}


def wrong_spellings(session_id: UUID) -> list[str]:
    """Paths that look like a session's and are not."""
    written = str(session_id)
    forms = (
        written.upper(),
        written.replace("-", ""),
        f"{{{written}}}",
        f"urn:uuid:{written}",
        written.replace("-", "%2d"),
    )
    return [
        path
        for path_of in (stream_path, data_path)
        for path in (
            *(path_of(form) for form in forms),
            path_of(written) + "/",
            path_of(written) + "%0A",
            path_of(written) + ";a=1",
            "/" + path_of(written),
            path_of(written).replace("/sessions", "/./sessions"),
        )
    ]


def _signed(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", "X-Forwarded-For": FORGED}


def _seen(answer: http.client.HTTPResponse) -> Seen:
    _check_told(answer.status)
    line = answer.readline(ANSWER_BYTES)
    try:
        return msgspec.json.decode(line, type=Seen)
    except msgspec.DecodeError as error:
        raise EdgeError("a signed probe was answered by something else") from error


def _check_told(status: int) -> None:
    """Raises :class:`EdgeError` when a signed probe was not answered as one."""
    match status:
        case 200:
            return
        case 429:
            raise EdgeError("the node answers as many probes as server.max_probes allows: ask again in a minute")
        case 426:
            raise EdgeError("a signed probe was answered 426: the node has another key store, clock or release")
        case _:
            raise EdgeError(f"a signed probe was answered {status}")
