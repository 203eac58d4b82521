"""``POST /drain`` on the internal listener: begin the drain and follow it, a JSON object a line (``docs/spec/cluster.md``, N2)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from bothy_server.cluster.app.drain import Drain

DRAIN_PATH = "/drain"


def drain_route(drain: Drain) -> Route:
    """The route of this node's drain."""

    async def answer(request: Request) -> Response:
        if not _from_this_machine(request):
            return Response(status_code=403)
        drain.begin()
        return StreamingResponse(_lines(drain), media_type="application/x-ndjson")

    return Route(DRAIN_PATH, answer, methods=["POST"])


def _from_this_machine(request: Request) -> bool:
    """Others may read the listener's metrics. A web page that somebody looks at here names its origin."""
    here, caller = request.scope["server"], request.client
    return caller is not None and caller.host == here[0] and "origin" not in request.headers


async def _lines(drain: Drain) -> AsyncIterator[str]:
    async for progress in drain.watch():
        yield json.dumps({"step": progress.step.value, **asdict(progress.left)}) + "\n"
