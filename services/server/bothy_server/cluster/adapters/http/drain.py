"""``POST /drain`` on the internal listener: begin the drain and follow it, a JSON object a line (``docs/spec/cluster.md``, N2)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from bothy_server.cluster.app.drain import Drain
from bothy_server.platform.http import bearer_token

DRAIN_PATH = "/drain"


def drain_route(drain: Drain, may: Callable[[str], bool]) -> Route:
    """The route of this node's drain, for callers of its own machine with a token that ``may``, in a thread, finds good."""

    async def answer(request: Request) -> Response:
        token = bearer_token(request)
        if not _from_this_machine(request) or token is None or not await asyncio.to_thread(may, token):
            return Response(status_code=403)
        drain.begin()
        return StreamingResponse(_lines(drain), media_type="application/x-ndjson")

    return Route(DRAIN_PATH, answer, methods=["POST"])


def _from_this_machine(request: Request) -> bool:
    """Others may read the listener's metrics, and need not try tokens."""
    here, caller = request.scope["server"], request.client
    return caller is not None and caller.host == here[0]


async def _lines(drain: Drain) -> AsyncIterator[str]:
    async for progress in drain.watch():
        yield json.dumps({"step": progress.step.value, **asdict(progress.left)}) + "\n"
