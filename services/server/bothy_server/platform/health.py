"""What the internal listener answers: `/livez`, `/readyz`, `/metrics`."""

from __future__ import annotations

from collections.abc import Callable

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


class Health:
    """Ready until the process leaves. A database that is away is told, and changes nothing: terminals go on without it."""

    def __init__(
        self, database: Database, clock: ClusterClock, clock_warn: float, on_away: Callable[[], None] = lambda: None
    ) -> None:
        """``clock_warn`` is the key ``cluster.clock_warn``, in seconds; ``on_away`` hears each time that none answers."""
        self._database = database
        self._clock = clock
        self._clock_warn = clock_warn
        self._on_away = on_away
        self._database_answers = True  # the process started because it did
        self._leaving = False
        self._reports: dict[str, Callable[[], str]] = {}

    def report(self, name: str, check: Callable[[], str]) -> None:
        """Let :meth:`checks` tell one more thing, ``ok`` or a reason. ``check`` never waits."""
        self._reports[name] = check

    def leave(self) -> None:
        """Not ready from now on."""
        self._leaving = True

    @property
    def ready(self) -> bool:
        """Whether an edge may send new work here."""
        return not self._leaving

    def checks(self) -> dict[str, str]:
        """Each dependency in one word, or a reason. Never waits: a probe that does would take the node out of the edge."""
        skew = self._clock.skew
        clock = "ok" if skew is None or abs(skew) <= self._clock_warn else f"differs by {skew:.1f} s from the database"
        return {
            "node": "leaving" if self._leaving else "ok",
            "database": "ok" if self._database_answers else "away",
            "clock": clock,
            **{name: check() for name, check in self._reports.items()},
        }

    async def run(self) -> None:
        """Ask the database every second until cancelled."""
        while True:
            self._database_answers = await self._ask()
            if not self._database_answers:
                self._on_away()
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
        status = "ready" if health.ready else "leaving"
        return json_response({"status": status, "checks": health.checks()}, 200 if health.ready else 503)

    async def metrics_text(_: Request) -> Response:
        return Response(metrics.render(), media_type=metrics.content_type)

    return Starlette(routes=[Route("/livez", livez), Route("/readyz", readyz), Route("/metrics", metrics_text)])
