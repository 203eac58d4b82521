"""What a node saw of one request, told to whoever holds the key store: the doctor (``docs/operations/doctor.md``).

A probe is a GET on a stream path with a token that only the key store can sign, short-lived and for this purpose alone.
The answer is about that request; everybody else gets the 426 of the path. So a stranger learns nothing. A token counts
once on each node: one that leaks unused shows its thief the thief's own address, and holds one connection for a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import asdict, dataclass

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from bothy_server.kernel.problems import Problem
from bothy_server.platform.client_address import Network, client_address, forwarded_chain
from bothy_server.platform.http import bearer_token, problem_response

MAX_HOLD_S = 60.0
"""Longest silence that a probe may ask for; it bounds how long one takes a place."""

_EMPTY = b"{}\n"
_GAP_S = 0.2
"""Between the first line and the second: what comes with the head passes an edge that buffers. No key: not to be tuned."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The first line of the answer. ``skew_s``: the node's own clock minus the database's."""

    node_id: str
    peer: str
    forwarded: list[str]
    client: str
    proto: str
    host: str
    origins: tuple[str, ...]
    skew_s: float | None


class EdgeProbe:
    """Answers probes."""

    def __init__(
        self,
        node_id: str,
        hold_of: Callable[[str], float | None],
        trusted: Sequence[Network],
        origins: tuple[str, ...],
        skew: Callable[[], float | None],
        most: int,
    ) -> None:
        """``hold_of`` spends a token: the seconds of silence it asks for, or None when it is no probe's or was used.

        ``trusted``, ``origins`` and ``most`` are the keys ``server.trusted_proxies``, ``server.public_origins`` and
        ``server.max_probes``.
        """
        self._node_id = node_id
        self._hold_of = hold_of
        self._trusted = trusted
        self._origins = origins
        self._skew = skew
        self._most = most
        self._open = 0

    def answer(self, request: Request) -> Response | None:
        """A line, soon another, silence for as long as the token says, the last. None for a request that is no probe."""
        token = bearer_token(request)
        hold_s = None if token is None else self._hold_of(token)
        if hold_s is None:
            return None
        if self._open >= self._most:
            return problem_response(Problem(429, "probe_limit", "The node answers server.max_probes probes already."))
        self._open += 1
        first = msgspec.json.encode(asdict(self._seen(request))) + b"\n"
        # nginx passes chunks on as they come, whatever is set; a body of known length is what it keeps back.
        length = {"Content-Length": str(len(first) + 2 * len(_EMPTY))}
        lines = _lines(first, hold_s if 0 <= hold_s <= MAX_HOLD_S else MAX_HOLD_S)
        return _Answer(lines, length, self._ended)

    def _ended(self) -> None:
        self._open -= 1

    def _seen(self, request: Request) -> Seen:
        assert request.client is not None
        peer, chain = request.client.host, forwarded_chain(request.headers.getlist("x-forwarded-for"))
        return Seen(
            self._node_id,
            peer,
            chain,
            client_address(peer, chain, self._trusted),
            request.headers.get("x-forwarded-proto", ""),
            request.headers.get("host", ""),
            self._origins,
            self._skew(),
        )


class _Answer(StreamingResponse):
    """Tells when it is over, however it ends; lines of which nothing was sent would not tell."""

    def __init__(self, lines: AsyncIterator[bytes], headers: dict[str, str], ended: Callable[[], None]) -> None:
        super().__init__(lines, headers=headers, media_type="application/x-ndjson")
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


async def _lines(first: bytes, hold_s: float) -> AsyncIterator[bytes]:
    yield first
    await asyncio.sleep(_GAP_S)
    yield _EMPTY
    await asyncio.sleep(hold_s)
    yield _EMPTY
