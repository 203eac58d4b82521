"""What the internal listener answers: `/livez`, `/readyz`, `/metrics`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from sqlalchemy import text
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bothy_server.kernel.unit import StorageUnavailable
from bothy_server.platform.clock import ClusterClock
from bothy_server.platform.database import Database
from bothy_server.platform.http import json_response
from bothy_server.platform.telemetry import Metrics

_INTERVAL_S = 1.0
"""Between two questions to the database: the oldest answer that `/readyz` gives."""

_PROBE = text("SELECT 1")

State = Literal["starting", "ready", "draining", "leaving"]


class Health:
    """Ready from the end of the start until the process leaves.

    A database that is away keeps a start from ending; later it is told and changes nothing: terminals go on without it.
    """

    def __init__(self, database: Database, clock: ClusterClock, clock_warn: float) -> None:
        """``clock_warn`` is the key ``cluster.clock_warn``, in seconds."""
        self._database = database
        self._clock = clock
        self._clock_warn = clock_warn
        self._database_answers = False
        self._state: State = "starting"
        self._reports: dict[str, Callable[[], str]] = {}

    def report(self, name: str, check: Callable[[], str]) -> None:
        """Let :meth:`checks` tell one more thing, ``ok`` or a reason. ``check`` never waits."""
        self._reports[name] = check

    def enter(self) -> None:
        """Ready from now on. The database was just used."""
        self._database_answers = True
        self._state = "ready"

    def drain(self) -> None:
        """Not ready from now on, though it goes on with what it has."""
        self._state = "draining"

    def leave(self) -> None:
        """Not ready from now on."""
        self._state = "leaving"

    @property
    def state(self) -> State:
        """An edge may send new work to a process that is ready."""
        return self._state

    def checks(self) -> dict[str, str]:
        """Each dependency in one word, or a reason. Never waits: a probe that does would take the node out of the edge."""
        skew = self._clock.skew
        clock = "ok" if skew is None or abs(skew) <= self._clock_warn else f"differs by {skew:.1f} s from the database"
        return {
            "node": "ok" if self._state == "ready" else self._state,
            "database": "ok" if self._database_answers else "away",
            "clock": clock,
            **{name: check() for name, check in self._reports.items()},
        }

    async def run(self, on_away: Callable[[], None] = lambda: None) -> None:
        """Ask the database every second until cancelled; ``on_away`` hears each time that none answers."""
        while True:
            self._database_answers = await self._ask()
            if not self._database_answers:
                on_away()
            await self._clock.sleep_until(self._clock.monotonic() + _INTERVAL_S)

    async def _ask(self) -> bool:
        try:
            async with self._database.connect() as connection:
                await connection.execute(_PROBE)
        except StorageUnavailable:
            return False
        return True


def internal_app(health: Health, metrics: Metrics) -> Starlette:
    """The application of the internal listener."""

    async def livez(_: Request) -> Response:
        return json_response({"status": "ok"})

    async def readyz(_: Request) -> Response:
        state = health.state
        return json_response({"status": state, "checks": health.checks()}, 200 if state == "ready" else 503)

    async def metrics_text(_: Request) -> Response:
        return Response(metrics.render(), media_type=metrics.content_type)

    return Starlette(routes=[Route("/livez", livez), Route("/readyz", readyz), Route("/metrics", metrics_text)])
