"""What the internal listener says of a node, with a real database that comes and goes."""

import asyncio
from contextlib import asynccontextmanager

import httpx2
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from bothy_kit.manual_clock import ManualClock
from bothy_server.platform.health import Health, internal_app
from bothy_server.platform.telemetry import Metrics


class Clock(ManualClock):
    """The skew of the node's clock is set by hand, too."""

    skew = None


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
async def health(database, clock):
    health = Health(database, clock, clock_warn=2)
    health.enter()
    running = asyncio.create_task(health.run())
    yield health
    running.cancel()
    await asyncio.wait([running])


async def asked_again(clock: Clock) -> None:
    async with asyncio.timeout(10):
        assert await clock.wait_for_timer() == 1
        clock.advance(1)
        await clock.wait_for_timer()


@asynccontextmanager
async def shut(postgres, database_settings):
    """Nobody may connect, and whoever was connected is cut."""
    name = conninfo_to_dict(database_settings.url.get_secret_value())["dbname"]
    allow = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
    async with await psycopg.AsyncConnection.connect(postgres.admin_url, autocommit=True) as admin:
        await admin.execute(allow.format(sql.Identifier(name), sql.SQL("false")))
        await admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        try:
            yield
        finally:
            await admin.execute(allow.format(sql.Identifier(name), sql.SQL("true")))


async def test_a_database_that_is_shut_is_told_and_its_return_too(health, clock, postgres, database_settings):
    await asked_again(clock)
    assert health.checks()["database"] == "ok"
    async with shut(postgres, database_settings):
        await asked_again(clock)
        assert health.checks()["database"] == "away"
        assert health.state == "ready"
    await asked_again(clock)
    assert health.checks()["database"] == "ok"


@pytest.mark.parametrize(
    ("skew", "word"), [(None, "ok"), (2, "ok"), (-2, "ok"), (2.25, "differs by 2.2 s from the database")]
)
async def test_a_clock_that_differs_is_told(database, clock, skew, word):
    clock.skew = skew
    assert Health(database, clock, clock_warn=2).checks()["clock"] == word


async def test_what_others_report_is_told_and_changes_no_status(database, clock):
    health = Health(database, clock, clock_warn=2)
    health.enter()
    said = ["ok"]
    health.report("keys", lambda: said[-1])
    assert health.checks() == {"node": "ok", "database": "ok", "clock": "ok", "keys": "ok"}
    said.append("another node signs with k2")
    assert (health.checks()["keys"], health.state) == ("another node signs with k2", "ready")


@asynccontextmanager
async def asking(health):
    metrics = Metrics()
    metrics.counter("bothy.things", "Things")
    transport = httpx2.ASGITransport(internal_app(health, metrics))
    async with httpx2.AsyncClient(transport=transport, base_url="http://internal") as client:
        yield client.get
    metrics.close()


@pytest.fixture
async def ask(health):
    async with asking(health) as get:
        yield get


async def test_a_process_that_starts_is_alive_and_not_ready(database, clock):
    health = Health(database, clock, clock_warn=2)
    async with asking(health) as get:
        waits = await get("/readyz")
        assert (waits.status_code, waits.json()["status"]) == (503, "starting")
        assert waits.json()["checks"] == {"node": "starting", "database": "away", "clock": "ok"}
        assert (await get("/livez")).status_code == 200
        health.enter()
        assert (await get("/readyz")).status_code == 200


async def test_a_node_is_ready_until_it_leaves_and_alive_to_the_end(health, ask):
    ready = await ask("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (200, "ready")
    assert ready.json()["checks"] == {"node": "ok", "database": "ok", "clock": "ok"}
    health.drain()
    draining = await ask("/readyz")
    assert (draining.status_code, draining.json()["status"]) == (503, "draining")
    health.leave()
    left = await ask("/readyz")
    assert (left.status_code, left.json()["status"], left.json()["checks"]["node"]) == (503, "leaving", "leaving")
    assert (await ask("/livez")).json() == {"status": "ok"}


async def test_metrics_are_text(ask):
    answer = await ask("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    assert "bothy_things_total 0.0" in answer.text
