"""A start that meets no database tries again, ever more slowly, and says so once."""

import asyncio
import logging

import pytest

from bothy_kit.manual_clock import ManualClock
from bothy_server.kernel.unit import StorageUnavailable
from bothy_server.platform.patience import patiently


class Away:
    """A database that does not answer the first ``times``."""

    def __init__(self, times, clock):
        self.left, self.clock, self.asked_at = times, clock, []

    async def ask(self):
        self.asked_at.append(self.clock.monotonic())
        self.left -= 1
        if self.left >= 0:
            raise StorageUnavailable("connection refused")


async def test_it_waits_longer_each_time_up_to_the_cap_and_goes_on(caplog):
    caplog.set_level(logging.INFO)
    clock = ManualClock()
    away, began = Away(5, clock), clock.monotonic()
    task = asyncio.create_task(patiently(away.ask, clock, backoff_cap=1))
    for wait in (0.25, 0.5, 1, 1, 1):
        await clock.wait_for_timer()
        clock.advance(wait)
    await task
    assert [at - began for at in away.asked_at] == [0, 0.25, 0.75, 1.75, 2.75, 3.75]
    assert caplog.messages == ["waiting for the database", "the database answers"]
    assert caplog.records[0].reason == "connection refused"


async def test_a_database_that_answers_is_not_talked_about(caplog):
    caplog.set_level(logging.INFO)
    await patiently(Away(0, clock := ManualClock()).ask, clock, backoff_cap=1)
    assert caplog.messages == []


async def test_what_time_does_not_mend_is_raised_at_once():
    async def refused():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await patiently(refused, ManualClock(), backoff_cap=1)
