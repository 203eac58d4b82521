import asyncio
from contextlib import asynccontextmanager
from functools import partial

import psycopg
import pytest

from bothy_kit.manual_clock import ManualClock
from bothy_server.cluster.adapters.postgres.listener import EphemeralListener, ListenUrlDeaf
from bothy_server.cluster.adapters.postgres.signals import notifier
from bothy_server.cluster.domain.listener import Limits
from bothy_server.hosts.domain.signals import HostClose
from bothy_server.kernel.unit import StorageUnavailable
from bothy_server.platform.database import Database
from bothy_server.platform.settings import Database as DatabaseSettings

LIMITS = Limits(backoff_cap=5, watchdog_interval=15, echo_timeout=4)
MOMENT_S = 3
BACKENDS = "FROM pg_stat_activity WHERE application_name = 'bothy-terminal-ephemeral' AND datname = current_database()"


class Node:
    """The listener of a node with its clock in the test's hands."""

    def __init__(self, url, listen_url, dispatcher):
        self.clock = ManualClock()
        self.database = Database(DatabaseSettings(url=url, listen_url=listen_url))
        self.hearing = []
        self._news = asyncio.Event()
        self.notify = notifier(self.database)
        self.listener = EphemeralListener(
            self.database, dispatcher, self.notify, self.clock, LIMITS, on_hearing=self._on_hearing
        )

    async def started(self):
        async with asyncio.timeout(20):
            await self.listener.started.wait()

    async def restored(self):
        async with asyncio.timeout(20):
            while self.hearing != [False, True]:
                self._news.clear()
                await self._news.wait()

    async def ring(self, seconds):
        """Let time pass until a timer that was set to ``seconds`` has rung."""
        async with asyncio.timeout(20):
            left = None
            while left != seconds:
                left = await self.clock.wait_for_timer(seconds)
                self.clock.advance(left)

    def _on_hearing(self, hears):
        self.hearing.append(hears)
        self._news.set()


@pytest.fixture
def node(dispatcher):
    @asynccontextmanager
    async def node(url, listen_url):
        node = Node(url, listen_url, dispatcher)
        running = asyncio.create_task(node.listener.run())
        try:
            yield node
        finally:
            running.cancel()
            async with asyncio.timeout(MOMENT_S):
                await asyncio.gather(running, return_exceptions=True)
            await node.database.close()

    return node


@pytest.fixture
async def administrator(empty_url):
    async with await psycopg.AsyncConnection.connect(empty_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def spoken(caplog):
    """``spoken()``: what the listener has logged."""
    caplog.set_level("INFO")
    return lambda: [record.message.removeprefix("terminal ephemeral listener ") for record in caplog.records]


async def notify(connection, payload):
    await connection.execute("SELECT pg_notify('ephemeral', %s)", [payload])


async def self_notify(connection):
    """Wait until the node has committed one."""
    async with asyncio.timeout(20):
        async for notification in connection.notifies(stop_after=1):
            assert "cluster.echo" in notification.payload


async def test_hears_what_is_committed_elsewhere_and_nothing_that_is_rolled_back(
    node, empty_url, administrator, table, recorder, sample, spoken
):
    async with node(empty_url, empty_url) as running:
        await running.started()
        assert recorder.gaps == 1
        async with administrator.transaction(force_rollback=True):
            await notify(administrator, table.encode(sample(HostClose, 1)))
        for number in (2, 3):
            await notify(administrator, table.encode(sample(HostClose, number)))
        await recorder.until(lambda r: r.heard == [sample(HostClose, 2), sample(HostClose, 3)])
        assert running.listener.echo_age_s == 0
        assert running.hearing == []
    assert spoken() == []


async def test_equal_signals_of_one_transaction_are_merged(node, empty_url, administrator, table, recorder, sample):
    async with node(empty_url, empty_url) as running:
        await running.started()
        async with administrator.transaction():
            for _ in range(3):
                await notify(administrator, table.encode(sample(HostClose)))
        await notify(administrator, table.encode(sample(HostClose, 2)))
        await recorder.until(lambda r: r.heard == [sample(HostClose), sample(HostClose, 2)])


async def test_waits_outside_any_transaction(node, empty_url, administrator):
    async with node(empty_url, empty_url) as running:
        await running.started()
        [(state,)] = await (await administrator.execute(f"SELECT state {BACKENDS}")).fetchall()
        assert state == "idle"


async def test_a_terminated_backend_is_a_gap_and_listening_comes_before_the_reconcile(
    node, empty_url, administrator, table, recorder, sample, spoken
):
    async with node(empty_url, empty_url) as running:
        await running.started()
        recorder.during_gap = partial(notify, administrator, table.encode(sample(HostClose)))
        await administrator.execute(f"SELECT pg_terminate_backend(pid) {BACKENDS}")
        await recorder.until(lambda r: r.heard == [sample(HostClose)] and r.gaps == 2)
        await notify(administrator, table.encode(sample(HostClose, 2)))
        await recorder.until(lambda r: r.heard[1:] == [sample(HostClose, 2)])
        await running.restored()
    assert spoken() == ["lost", "restored"]


async def test_silent_deafness_is_noticed_by_the_missing_echo(node, empty_url, link, recorder, spoken, caplog):
    async with node(empty_url, link.url) as running:
        await running.started()
        link.stall()
        await running.ring(LIMITS.watchdog_interval)
        await running.ring(LIMITS.echo_timeout)  # the self-notify was committed; no echo
        await running.ring(LIMITS.echo_timeout)  # the attempt at once
        assert running.hearing == [False]
        assert running.listener.echo_age_s == LIMITS.watchdog_interval + 2 * LIMITS.echo_timeout
        await link.heal()
        await running.ring(LIMITS.backoff_cap)
        await running.restored()
    assert recorder.gaps == 2
    assert spoken() == ["lost", "restored"]
    assert getattr(caplog.records[0], "error.type") == "echo_timeout"


async def test_a_way_that_turned_into_a_pooler_is_never_called_restored(
    node, empty_url, administrator, link, recorder, spoken
):
    async with node(empty_url, link.url) as running:
        await running.started()
        await administrator.execute("LISTEN ephemeral")
        link.drop_notifications()
        await running.ring(LIMITS.watchdog_interval)
        await self_notify(administrator)
        await running.ring(LIMITS.echo_timeout)
        for _ in range(3):
            await self_notify(administrator)  # so LISTEN has succeeded again
            await running.ring(LIMITS.backoff_cap)
        assert recorder.gaps == 1
    assert spoken() == ["lost"]


async def test_a_database_that_goes_and_comes_back(node, link, recorder, spoken, caplog):
    async with node(link.url, link.url) as running:
        await running.started()
        await link.cut()
        for _ in range(3):
            await running.ring(LIMITS.backoff_cap)
        await link.heal()
        await running.ring(LIMITS.backoff_cap)
        await running.restored()
    assert recorder.gaps == 2
    assert spoken() == ["lost", "restored"]
    assert [each.levelname for each in caplog.records] == ["WARNING", "INFO"]
    assert getattr(caplog.records[0], "error.type") == "OperationalError"


async def test_starts_without_the_database_and_hears_when_it_comes(node, link, recorder, spoken):
    url = link.url
    await link.cut()
    async with node(url, url) as running:
        await running.started()
        assert recorder.gaps == 0
        await link.heal()
        await running.ring(LIMITS.backoff_cap)
        await running.restored()
    assert recorder.gaps == 1
    assert spoken() == ["lost", "restored"]


@pytest.mark.parametrize("fault", ["pooler", "refused", "stalled"])
async def test_a_listen_url_that_hears_nothing_fails_the_start(
    empty_url, administrator, link, dispatcher, spoken, fault
):
    node = Node(empty_url, link.url, dispatcher)
    match fault:
        case "pooler":
            link.drop_notifications()
        case "refused":
            await link.cut()
        case "stalled":
            link.stall()
    if fault == "pooler":
        await administrator.execute("LISTEN ephemeral")
    running = asyncio.create_task(node.listener.run())
    if fault == "pooler":
        await self_notify(administrator)
    while not running.done():
        waiting = asyncio.create_task(node.clock.wait_for_timer())
        await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED)
        if not waiting.cancel():
            node.clock.advance(waiting.result())
    with pytest.raises(ListenUrlDeaf, match=r"database\.listen_url"):
        await running
    assert LIMITS.watchdog_interval <= node.clock.monotonic() <= LIMITS.watchdog_interval + LIMITS.echo_timeout
    assert not node.listener.started.is_set()
    assert spoken() == []
    await node.database.close()


@pytest.mark.parametrize("when", ["connecting", "hearing"])
async def test_stops_at_once_on_a_stalled_link(node, empty_url, link, when):
    if when == "connecting":
        link.stall()
    async with node(empty_url, link.url) as running:
        if when == "hearing":
            await running.started()
            link.stall()
        await running.clock.wait_for_timer()


async def test_stops_at_once_while_listen_is_unanswered(node, empty_url, link):
    """The driver would wait ten seconds here."""
    link.stall_from("LISTEN")
    async with node(empty_url, link.url):
        await link.stalled()


async def test_a_self_notify_that_cannot_be_committed_is_no_loss(dispatcher, empty_url, spoken):
    node = Node(empty_url, empty_url, dispatcher)
    pool_is_away = asyncio.Event()
    failed = asyncio.Event()

    async def notify(payloads):
        if pool_is_away.is_set():
            failed.set()
            raise StorageUnavailable
        await node.notify(payloads)

    listener = EphemeralListener(node.database, dispatcher, notify, node.clock, LIMITS, on_hearing=node.hearing.append)
    running = asyncio.create_task(listener.run())
    async with asyncio.timeout(20):
        await listener.started.wait()
        pool_is_away.set()
        await node.clock.wait_for_timer(LIMITS.watchdog_interval)
        node.clock.advance(LIMITS.watchdog_interval)
        await failed.wait()
        assert await node.clock.wait_for_timer() == LIMITS.watchdog_interval
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await node.database.close()
    assert spoken() == []


async def test_a_bug_ends_the_task(node, empty_url, administrator, dispatcher, monkeypatch):
    def bug(payload):
        raise LookupError(payload)

    monkeypatch.setattr(dispatcher, "receive", bug)
    database = Database(DatabaseSettings(url=empty_url))
    listener = EphemeralListener(database, dispatcher, notifier(database), ManualClock(), LIMITS, lambda _: None)
    running = asyncio.create_task(listener.run())
    async with asyncio.timeout(20):
        await listener.started.wait()
        await notify(administrator, "anything")
        with pytest.raises(ExceptionGroup) as caught:
            await running
    assert caught.group_contains(LookupError)
    await database.close()
