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
        if "origin" in request.headers:  # a web page that an operator looks at on this machine
            return Response(status_code=403)
        drain.begin()
        return StreamingResponse(_lines(drain), media_type="application/x-ndjson")

    return Route(DRAIN_PATH, answer, methods=["POST"])


async def _lines(drain: Drain) -> AsyncIterator[str]:
    async for progress in drain.watch():
        yield json.dumps({"step": progress.step.value, **asdict(progress.left)}) + "\n"
