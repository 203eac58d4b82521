"""Parts start in order and stop in reverse; a task that ends by itself ends the process."""

import asyncio
import contextlib

import pytest

from bothy_server.platform.lifecycle import ComponentEnded, Lifecycle


class Diary:
    def __init__(self) -> None:
        self.lines: list[str] = []

    @contextlib.asynccontextmanager
    async def part(self, name, *, fails_to_start=False, fails_to_stop=False):
        if fails_to_start:
            raise OSError(name)
        self.lines.append(f"+{name}")
        try:
            yield name
        finally:
            self.lines.append(f"-{name}")
        if fails_to_stop:
            raise OSError(name)

    async def work(self, name, *, ends=None, error=None):
        self.lines.append(f"+{name}")
        try:
            await (ends.wait() if ends else asyncio.Event().wait())
            if error:
                raise error
        finally:
            self.lines.append(f"-{name}")


@pytest.fixture
def diary():
    return Diary()


async def test_parts_and_tasks_stop_in_the_reverse_order_of_their_start(diary):
    async with Lifecycle() as parts:
        assert await parts.start("database", diary.part("database")) == "database"
        parts.own("tail", diary.work("tail"))
        await asyncio.sleep(0)
        await parts.start("http", diary.part("http"))
        parts.stop()
        await parts.until_stopped()
    assert diary.lines == ["+database", "+tail", "+http", "-http", "-tail", "-database"]


async def test_what_was_started_is_stopped_when_a_later_part_does_not_start(diary):
    async def process() -> None:
        async with Lifecycle() as parts:
            await parts.start("database", diary.part("database"))
            await parts.start("http", diary.part("http", fails_to_start=True))

    with pytest.raises(OSError, match="http"):
        await process()
    assert diary.lines == ["+database", "-database"]


async def test_a_part_that_does_not_stop_well_keeps_no_other_from_stopping(diary):
    async def process() -> None:
        async with Lifecycle() as parts:
            await parts.start("database", diary.part("database"))
            await parts.start("http", diary.part("http", fails_to_stop=True))

    with pytest.raises(OSError, match="http"):
        await process()
    assert diary.lines == ["+database", "+http", "-http", "-database"]


@pytest.mark.parametrize("error", [None, ZeroDivisionError()])
async def test_a_task_that_ends_by_itself_ends_the_process_with_its_name_and_cause(diary, error):
    async def process() -> None:
        ends = asyncio.Event()
        async with Lifecycle() as parts:
            await parts.start("database", diary.part("database"))
            parts.own("tail", diary.work("tail", ends=ends, error=error))
            ends.set()
            await parts.until_stopped()

    with pytest.raises(ComponentEnded, match="tail") as caught:
        await process()
    assert caught.value.__cause__ is error
    assert diary.lines == ["+database", "+tail", "-tail", "-database"]
    assert asyncio.current_task().cancelling() == 0


async def test_it_interrupts_a_start_that_would_wait_for_it_for_ever(diary):
    async def dies() -> None:
        raise ZeroDivisionError

    async def process() -> None:
        async with Lifecycle() as parts:
            parts.own("tail", dies())
            await asyncio.Event().wait()

    with pytest.raises(ComponentEnded, match="tail"):
        await process()


async def test_asked_to_stop_it_gives_up_a_start_that_waits_and_leaves_in_silence(diary):
    async with Lifecycle() as parts:
        await parts.start("database", diary.part("database"))
        parts.own("tail", diary.work("tail"))
        for _ in range(2):
            asyncio.get_running_loop().call_soon(parts.stop)
        await asyncio.Event().wait()
        diary.lines.append("never")
    assert diary.lines == ["+database", "+tail", "-tail", "-database"]
    assert asyncio.current_task().cancelling() == 0


async def test_a_start_that_fails_when_it_is_given_up_is_heard():
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(pytest.raises(OSError, match="port"))
        parts = await stack.enter_async_context(Lifecycle())
        asyncio.get_running_loop().call_soon(parts.stop)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise OSError("port") from None


async def test_a_task_that_fails_while_it_is_stopped_is_logged_and_the_rest_stops(diary, caplog):
    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ZeroDivisionError from None

    async with Lifecycle() as parts:
        await parts.start("database", diary.part("database"))
        parts.own("tail", stubborn())
        await asyncio.sleep(0)
    assert diary.lines == ["+database", "-database"]
    assert [(record.message, record.component) for record in caplog.records] == [("component failed", "tail")]


async def test_cancelling_the_process_stops_everything(diary):
    started = asyncio.Event()

    async def process() -> None:
        async with Lifecycle() as parts:
            await parts.start("database", diary.part("database"))
            parts.own("tail", diary.work("tail"))
            started.set()
            await parts.until_stopped()

    task = asyncio.create_task(process())
    await started.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert diary.lines[-2:] == ["-tail", "-database"]
