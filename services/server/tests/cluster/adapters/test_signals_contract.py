"""One suite for both transports, behind the real unit of work on a real database."""

import asyncio
from contextlib import suppress

import pytest

from bothy_server.cluster.adapters.local import LocalSignals
from bothy_server.cluster.adapters.postgres.listener import EphemeralListener
from bothy_server.cluster.adapters.postgres.signals import NotifySignals, notifier
from bothy_server.cluster.domain.listener import Limits
from bothy_server.hosts.domain.signals import HostClose, HostGone, HostPresent
from bothy_server.platform.database import Database
from bothy_server.platform.settings import Database as DatabaseSettings
from bothy_server.platform.unit_of_work import SqlUnitOfWork
from bothy_server.terminal.domain.signals import SessionOpen


@pytest.fixture
async def database(database_url):
    database = Database(DatabaseSettings(url=database_url))
    yield database
    await database.close()


@pytest.fixture(params=["local", "notify"])
async def signals(request, database, dispatcher, table, clock):
    if request.param == "local":
        yield LocalSignals(dispatcher.deliver)
        return
    notify = notifier(database)
    signals = NotifySignals(table, notify, max_waiting=100)
    limits = Limits(backoff_cap=1, watchdog_interval=15, echo_timeout=10)
    listener = EphemeralListener(database, dispatcher, notify, clock, limits, on_hearing=lambda _: None)
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(each.run()) for each in (signals, listener)]
        await listener.started.wait()
        yield signals
        for task in running:
            task.cancel()


@pytest.fixture
def uow(database, signals):
    return SqlUnitOfWork(database, {}, signals)


async def test_a_committed_unit_is_heard_once_and_in_order(uow, recorder, sample):
    async with uow() as unit:
        unit.stage(sample(SessionOpen))
        unit.stage(sample(HostClose))
    await recorder.until(lambda r: len(r.heard) == 2)
    async with uow() as unit:
        unit.stage(sample(HostClose, 2))
    await recorder.until(lambda r: r.heard[2:] == [sample(HostClose, 2)])
    assert recorder.heard[:2] == [sample(SessionOpen), sample(HostClose)]


async def test_an_open_unit_and_a_rolled_back_one_are_never_heard(uow, recorder, sample):
    with suppress(LookupError):
        async with uow() as unit:
            unit.stage(sample(HostClose, 1))
            raise LookupError
    async with uow() as unit:
        unit.stage(sample(HostClose, 2))
        assert recorder.heard == []
    await recorder.until(lambda r: r.heard == [sample(HostClose, 2)])


async def test_sending_never_waits_and_never_raises(signals, uow, recorder, sample):
    for number in range(50):
        signals.send(sample(HostPresent, number))
    async with uow() as unit:
        unit.stage(sample(HostGone))
    await recorder.until(lambda r: sample(HostGone) in r.heard)
