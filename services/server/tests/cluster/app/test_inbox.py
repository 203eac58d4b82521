import asyncio

import pytest

from bothy_kit.manual_clock import ManualClock
from bothy_server.cluster.app.inbox import Inbox, InboxLimits
from bothy_server.hosts.domain.signals import HostClose
from bothy_server.kernel.unit import StorageUnavailable


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
async def inbox(recorder, clock):
    inbox = Inbox(recorder, clock, InboxLimits(waiting=3, gap_retry=5))
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(inbox.run())
        yield inbox
        running.cancel()


async def test_hands_over_in_order_and_gathers_while_one_batch_is_handled(inbox, recorder, sample):
    signals = [sample(HostClose, number) for number in range(4)]
    recorder.open.clear()
    inbox.put(signals[0])
    await recorder.until(lambda r: r.heard == signals[:1])
    for signal in signals[1:]:
        inbox.put(signal)
    recorder.open.set()
    await recorder.until(lambda r: r.batches == [signals[:1], signals[1:]])
    assert (recorder.gaps, inbox.overflows, inbox.failures) == (0, 0, 0)


async def test_overflow_is_one_gap_behind_what_waited(inbox, recorder, sample):
    recorder.during_gap = lambda: asyncio.sleep(0)
    for number in range(10):
        inbox.put(sample(HostClose, number))
    await recorder.until(lambda r: r.gaps == 1)
    assert recorder.heard == [sample(HostClose, number) for number in range(3)]
    assert inbox.overflows == 7
    inbox.put(sample(HostClose, 11))
    await recorder.until(lambda r: r.heard[-1] == sample(HostClose, 11))
    assert recorder.gaps == 1


async def test_a_failing_handler_is_contained_counted_logged_and_told_of_a_gap(inbox, recorder, sample, caplog):
    recorder.fail_handle = 1
    inbox.put(sample(HostClose))
    await recorder.until(lambda r: r.gaps == 1)
    inbox.put(sample(HostClose, 2))
    await recorder.until(lambda r: sample(HostClose, 2) in r.heard)
    assert inbox.failures == 1
    [record] = caplog.records
    assert record.message == "terminal signal handler failed"
    assert getattr(record, "error.type") == "RuntimeError"


async def test_a_gap_is_tried_until_it_is_closed_and_signals_do_not_wait_for_it(inbox, recorder, sample, caplog, clock):
    recorder.fail_gap = 3
    closed = inbox.gap()
    await recorder.until(lambda r: r.gaps == 1)
    inbox.put(sample(HostClose))
    await recorder.until(lambda r: r.heard == [sample(HostClose)])
    assert recorder.gaps == 1
    for gaps in (2, 3, 4):
        assert await clock.wait_for_timer() == 5
        clock.advance(5)
        await recorder.until(lambda r, gaps=gaps: r.gaps == gaps)
    async with asyncio.timeout(10):
        await closed.wait()
    assert (recorder.gaps, inbox.failures) == (4, 3)
    assert [record.message for record in caplog.records] == ["terminal signal handler failed"] * 3


async def test_a_gap_that_opens_while_one_is_being_closed_gets_a_reconcile_of_its_own(inbox, recorder):
    later = []

    async def open_another():
        if not later:
            later.append(inbox.gap())

    recorder.during_gap = open_another
    first = inbox.gap()
    async with asyncio.timeout(10):
        await first.wait()
        await later[0].wait()
    assert recorder.gaps == 2


async def test_a_database_that_is_away_is_no_bug(inbox, recorder, clock, caplog):
    async def away():
        raise StorageUnavailable

    recorder.during_gap = away
    inbox.gap()
    await clock.wait_for_timer()
    assert [record.exc_info for record in caplog.records] == [False]


async def test_ends_with_a_retry_pending(recorder, clock):
    inbox = Inbox(recorder, clock, InboxLimits(waiting=1, gap_retry=5))
    recorder.fail_gap = 1
    inbox.gap()
    running = asyncio.create_task(inbox.run())
    await clock.wait_for_timer()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    clock.advance(5)
    assert recorder.gaps == 1
