"""What a node saw of one request, told to whoever holds the key store: the doctor (``docs/operations/doctor.md``).

A probe is a GET on a stream path with a token that only the key store can sign, short-lived and for this purpose alone.
The answer is about that request; everybody else gets the 426 of the path. So a stranger learns nothing, and a token that
leaks shows its thief the thief's own address.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import asdict, dataclass

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from bothy_server.platform.client_address import Network, client_address, forwarded_chain
from bothy_server.platform.http import bearer_token

MAX_HOLD_S = 60.0
"""Longest silence that a probe may ask for; it bounds what a leaked token can hold open."""


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
    ) -> None:
        """``hold_of`` reads a token: the seconds of silence it asks for, or None when it is no probe's.

        ``trusted`` and ``origins`` are the keys ``server.trusted_proxies`` and ``server.public_origins``.
        """
        self._node_id = node_id
        self._hold_of = hold_of
        self._trusted = trusted
        self._origins = origins
        self._skew = skew

    def answer(self, request: Request) -> Response | None:
        """A line, soon another, silence for as long as the token says, the last. None for a request that is no probe."""
        token = bearer_token(request)
        hold_s = None if token is None else self._hold_of(token)
        if hold_s is None:
            return None
        first = msgspec.json.encode(asdict(self._seen(request))) + b"\n"
        # nginx passes chunks on as they come, whatever is set; a body of known length is what it keeps back.
        length = {"Content-Length": str(len(first) + 2 * len(_EMPTY))}
        lines = _lines(first, min(hold_s, MAX_HOLD_S))
        return StreamingResponse(lines, headers=length, media_type="application/x-ndjson")

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


async def _lines(first: bytes, hold_s: float) -> AsyncIterator[bytes]:
    yield first
    await asyncio.sleep(_GAP_S)
    yield _EMPTY
    await asyncio.sleep(hold_s)
    yield _EMPTY
