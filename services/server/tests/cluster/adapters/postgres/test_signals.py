import asyncio

import pytest

from bothy_server.cluster.adapters.postgres.signals import NotifySignals
from bothy_server.hosts.domain.signals import HostGone, HostPresent
from bothy_server.kernel.unit import StorageUnavailable


class Notified:
    """Stands for the pool: stalls and fails on demand."""

    def __init__(self):
        self.statements = []
        self.open = asyncio.Event()
        self.open.set()
        self.fails = 0
        self.news = asyncio.Event()

    async def __call__(self, payloads):
        self.statements.append(list(payloads))
        self.news.set()
        await self.open.wait()
        if self.fails:
            self.fails -= 1
            raise StorageUnavailable from ConnectionError("away")

    async def until(self, count):
        async with asyncio.timeout(10):
            while len(self.statements) < count:
                self.news.clear()
                await self.news.wait()


@pytest.fixture
def notified():
    return Notified()


@pytest.fixture
async def signals(table, notified):
    signals = NotifySignals(table, notified, max_waiting=5)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(signals.run())
        yield signals
        running.cancel()


async def test_sends_many_in_one_statement_while_one_is_under_way(signals, notified, table, sample):
    notified.open.clear()
    signals.send(sample(HostGone))
    await notified.until(1)
    for number in range(5):
        signals.send(sample(HostPresent, number))
    notified.open.set()
    await notified.until(2)
    assert notified.statements == [
        [table.encode(sample(HostGone))],
        [table.encode(sample(HostPresent, number)) for number in range(5)],
    ]
    assert signals.dropped == 0


async def test_drops_and_counts_what_finds_the_queue_full(signals, notified, table, sample):
    for number in range(8):
        signals.send(sample(HostPresent, number))
    await notified.until(1)
    assert notified.statements == [[table.encode(sample(HostPresent, number)) for number in range(5)]]
    assert signals.dropped == 3


async def test_a_database_that_is_away_costs_the_hints(signals, notified, sample, caplog):
    notified.fails = 2
    for number in range(3):
        signals.send(sample(HostGone, number))
        await notified.until(number + 1)
    assert signals.dropped == 2
    assert [(record.message, getattr(record, "error.type")) for record in caplog.records] == [
        ("terminal signals not sent", "ConnectionError")
    ] * 2
