import asyncio

import pytest

from bothy_server.cluster.app.dispatcher import Dispatcher
from bothy_server.hosts.domain.signals import HostClose, HostPresent
from bothy_server.terminal.domain.signals import SessionOpen


async def test_hands_each_kind_to_those_who_want_it(table, recorder, clock, limits, sample):
    other = type(recorder)()
    dispatcher = Dispatcher(table, {SessionOpen: [recorder], HostClose: [recorder, other]}, clock, limits)
    running = asyncio.create_task(dispatcher.run())
    for kind in (SessionOpen, HostPresent, HostClose):
        dispatcher.receive(table.encode(sample(kind)))
    await recorder.until(lambda r: r.heard == [sample(SessionOpen), sample(HostClose)])
    await other.until(lambda r: r.heard == [sample(HostClose)])
    running.cancel()


async def test_counts_and_logs_every_malformed_payload(table, clock, limits, caplog):
    dispatcher = Dispatcher(table, {}, clock, limits)
    for payload in ("x", "{}", '{"kind":"terminal.no"}', '{"kind":"terminal.host_close"}'):
        dispatcher.receive(payload)
    assert dispatcher.malformed == 4
    assert [(record.levelname, record.message, getattr(record, "bothy.reason")) for record in caplog.records] == [
        ("WARNING", "terminal signal dropped", "malformed")
    ] * 4


async def test_leaves_foreign_kinds_alone(dispatcher, recorder, sample, table, caplog):
    dispatcher.receive('{"kind":"typing.started","who":null}')
    dispatcher.receive(table.encode(sample(HostClose)))
    await recorder.until(lambda r: r.heard == [sample(HostClose)])
    assert dispatcher.malformed == 0
    assert not caplog.records


async def test_reconciles_all_handlers_and_returns_after_the_last(table, recorder, clock, limits):
    slow = type(recorder)()
    gate = asyncio.Event()
    slow.during_gap = gate.wait
    dispatcher = Dispatcher(table, {SessionOpen: [recorder], HostClose: [slow]}, clock, limits)
    running = asyncio.create_task(dispatcher.run())
    reconciling = asyncio.create_task(dispatcher.reconcile())
    await recorder.until(lambda r: r.gaps == 1)
    await slow.until(lambda r: r.gaps == 1)
    assert not reconciling.done()
    gate.set()
    async with asyncio.timeout(10):
        await reconciling
    running.cancel()


@pytest.mark.parametrize("fault", ["stalled", "failing"])
async def test_one_handler_costs_the_others_nothing(table, recorder, clock, limits, sample, fault):
    bad = type(recorder)()
    bad.fail_handle = 5 if fault == "failing" else 0
    if fault == "stalled":
        bad.open.clear()
    dispatcher = Dispatcher(table, {HostClose: [bad, recorder]}, clock, limits)
    running = asyncio.create_task(dispatcher.run())
    for number in range(1000):
        dispatcher.deliver([sample(HostClose, number)])
        if number % 50 == 0:
            await recorder.until(lambda r, number=number: len(r.heard) == number + 1)
    await recorder.until(lambda r: len(r.heard) == 1000)
    assert dispatcher.failures > 0 if fault == "failing" else dispatcher.overflows > 0
    running.cancel()
