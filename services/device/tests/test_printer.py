"""The queue in front of the terminal, on real pseudo-terminals and pipes."""

import asyncio
import os
import pty
import tty

import pytest

from bothy_device.printer import Printer, write_out


class Display:
    """A terminal whose reader is the test, and the printer in front of it."""

    def __init__(self):
        self.master, self.slave = pty.openpty()
        tty.setraw(self.slave)
        os.set_blocking(self.slave, False)
        os.set_blocking(self.master, False)
        self.taken, self.lost = 0, []
        self.printer = Printer(self.slave, blocking=False, on_written=self.written, on_lost=self.lost.append)

    def written(self, count):
        self.taken += count

    async def fill(self, size=300_000):
        """Remote output until the terminal is full."""
        self.printer.write(b"z" * size)
        before = -1
        while before != self.taken:
            before = self.taken
            await asyncio.sleep(0.1)
        assert self.taken < size

    async def shown(self, done):
        seen = b""
        async with asyncio.timeout(20):
            while not done(seen):
                try:
                    seen += os.read(self.master, 65536)
                except BlockingIOError:
                    await asyncio.sleep(0.01)
        return seen

    def close(self):
        self.printer.close(fresh_line=False)
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
async def display():
    made = Display()
    yield made
    made.close()


async def test_output_is_written_whole_and_in_order(display):
    await display.fill()
    display.printer.write(b"END")
    assert await display.shown(lambda seen: seen.endswith(b"END")) == b"z" * 300_000 + b"END"
    assert display.taken == 300_003


async def test_output_that_a_repaint_replaces_counts_as_taken(display):
    await display.fill()
    written = display.taken
    display.printer.discard()
    assert display.taken == 300_000
    display.printer.write(b"repaint")
    seen = await display.shown(lambda seen: seen.endswith(b"repaint"))
    assert seen == b"z" * written + b"repaint"


async def test_words_that_nobody_reads_are_bounded_and_the_same_words_wait_once(display):
    await display.fill()
    for number in range(1000):
        display.printer.say(b"<%d>" % number)
        display.printer.say(b"\a")
    seen = await display.shown(lambda seen: seen.count(b"z") == 300_000 and seen.endswith(b"z"))
    words = seen.replace(b"z", b"")
    assert b"<999>" in words
    assert b"\a" in words
    assert words.count(b"<") < 40


async def test_words_wait_until_a_sequence_is_whole(display):
    display.printer.write(b"a\x1b[3")
    display.printer.say(b"<words>")
    display.printer.write(b"1mb")
    assert await display.shown(lambda seen: seen.endswith(b">")) == b"a\x1b[31mb<words>"


async def test_a_terminal_that_went_is_told_once(display):
    os.close(display.master)
    display.printer.write(b"x")
    display.master = os.open("/dev/null", os.O_RDONLY)
    assert len(display.lost) == 1


async def test_a_full_terminal_does_not_hold_up_the_end(display):
    display.printer.write(b"\x1b[?1049h")
    display.printer.status("busy", 80)
    await display.fill()
    started = asyncio.get_running_loop().time()
    display.printer.close(fresh_line=True)
    assert asyncio.get_running_loop().time() - started < 5


async def test_a_descriptor_of_somebody_else_gets_no_more_than_it_takes_at_once():
    reader, writer = os.pipe()
    taken, lost = [], asyncio.get_running_loop().create_future()
    printer = Printer(writer, blocking=True, on_written=taken.append, on_lost=lost.set_result)
    printer.write(b"y" * 1_000_000)
    assert 0 < sum(taken) < 1_000_000
    os.close(reader)
    assert await asyncio.wait_for(lost, 20) == "Broken pipe"
    printer.close(fresh_line=False)
    os.close(writer)


def test_last_words_are_written_as_far_as_they_are_taken():
    reader, writer = os.pipe()
    write_out(writer, b"x" * 10_000_000, 0.05)
    os.close(writer)
    taken = 0
    while piece := os.read(reader, 1 << 20):
        taken += len(piece)
    os.close(reader)
    assert 0 < taken < 10_000_000


def test_last_words_to_nobody():
    reader, writer = os.pipe()
    os.close(reader)
    write_out(writer, b"x", 1)
    os.close(writer)
    write_out(writer, b"x", 1)


async def test_a_line_that_the_program_cleared_away_takes_nothing_with_it(display):
    display.printer.status("trouble", 80)
    display.printer.write(b"\x1bcfresh")
    assert display.printer.status(None, 80) is False
    display.printer.write(b"end")
    assert (await display.shown(lambda seen: seen.endswith(b"end"))).endswith(b"\x1bcfreshend")


async def test_a_line_goes_and_says_that_it_covered_something(display):
    display.printer.status("trouble", 80)
    assert display.printer.status(None, 80) is True
    assert display.printer.status(None, 80) is False
    display.printer.write(b"end")
    assert (await display.shown(lambda seen: seen.endswith(b"end"))).count(b"\x1b[2K") == 1


async def test_a_line_that_waits_behind_a_sequence_is_drawn_behind_a_reset_and_goes(display):
    display.printer.write(b"\x1b]0;ti")
    display.printer.status("trouble", 80)
    display.printer.write(b"tle\x07\x1bc")
    display.printer.status("more trouble", 80)
    assert display.printer.status(None, 80) is True
    display.printer.write(b"end")
    seen = await display.shown(lambda seen: seen.endswith(b"end"))
    assert seen.rindex(b"\x1b[2K") > seen.rindex(b"more trouble") > seen.index(b"\x1bc")


@pytest.mark.parametrize("cut", [b"\x1b[3", b"\x1b]2;ti", b"\xc3", b"\xe2\x82", b"\x1b"])
async def test_a_line_is_drawn_where_the_output_broke_off_and_the_rest_joins_it(display, cut):
    display.printer.write(b"before " + cut)
    display.printer.status("trouble", 80)
    display.printer.status("more trouble", 80)
    seen = await display.shown(lambda seen: b"more trouble" in seen and seen.endswith(b"\x1b8"))
    assert seen.startswith(b"before " + cut + b"\x18\x1b7")
    assert seen.count(b"\x18") == 1
    display.printer.write(b"rest")
    assert await display.shown(lambda seen: seen.endswith(b"rest")) == cut + b"rest"
    display.printer.status(None, 80)
    assert display.taken == len(b"before " + cut + b"rest")
