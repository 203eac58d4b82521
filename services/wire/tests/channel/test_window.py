"""The output window on ways of all kinds: a program that prints without end behind it, in simulated time."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothy_wire.channel.flow import Departures, Limits
from bothy_wire.channel.window import LONGEST_ROUND_TRIP, SPARE, OutputWindow

LIMITS = Limits()
KB, MB = 1000, 1000_000
STEP = 0.005


class Way:
    """Carries ``rate`` bytes a second, the last of them acknowledged ``delay`` seconds after it left; nothing is lost.

    ``handshake`` is the round trip that the handshake saw. ``burst`` bytes go through at once after a pause.
    """

    def __init__(self, rate: float, delay: float, *, handshake: float | None = None, burst: float = 0.0) -> None:
        self.rate, self.delay = rate, delay
        self.window = OutputWindow(LIMITS, delay if handshake is None else handshake)
        self.counts = Departures()
        self.now = 0.0
        self.held = False  # acknowledgements are on their way, and none arrives
        self.delivered = 0.0
        self._burst = self._tokens = burst
        self._acks: deque[tuple[float, int]] = deque()

    def flood(self, seconds: float) -> None:
        """Print all that the window allows."""
        for _ in range(round(seconds / STEP)):
            self.send(self.counts.credit(self.window.size))
            self.step()

    def send(self, count: int) -> None:
        while count:
            piece = min(count, self.window.piece)
            self.counts.send(piece)
            self.window.sent(self.counts.sent, self.counts.in_flight, self.now)
            count -= piece

    def step(self) -> None:
        self.now += STEP
        self._tokens = min(self._tokens + self.rate * STEP, max(self._burst, self.rate * STEP))
        moved = min(self._tokens, self.counts.sent - self.delivered)
        self.delivered += moved
        self._tokens -= moved
        if moved:
            self._acks.append((self.now + self.delay, int(self.delivered)))
        while self._acks and self._acks[0][0] <= self.now and not self.held:
            self.counts.acknowledge(self._acks.popleft()[1])
            self.window.acknowledged(self.counts.acknowledged, self.now)
            assert LIMITS.output_window_min <= self.window.size <= LIMITS.output_window_max

    @property
    def wait(self) -> float:
        """Seconds until what is printed now is shown."""
        return (self.counts.sent - self.delivered) / self.rate + self.delay


@pytest.mark.parametrize("delay", [0.001, 0.05, 0.3])
@pytest.mark.parametrize("rate", [64 * KB, 200 * KB, MB])
def test_a_flood_on_a_slow_way_keeps_a_short_queue_and_the_way_busy(rate, delay):
    way = Way(rate, delay)
    way.flood(10)
    assert way.wait <= delay + 1.5 * SPARE
    before = way.delivered
    way.flood(10)
    assert way.wait <= delay + 1.5 * SPARE
    assert way.delivered - before >= 0.9 * rate * 10


def test_the_first_seconds_of_a_flood_wait_for_the_first_window_at_most():
    """At 64 kB/s: Ctrl-C at any time of a flood takes effect within 5 s."""
    way = Way(64 * KB, 0.1)
    for _ in range(100):
        way.flood(0.1)
        assert way.wait < 4.5


def test_a_way_below_the_smallest_window_goes_on():
    way = Way(4 * KB, 0.2)
    way.flood(120)
    assert way.window.size == LIMITS.output_window_min
    assert way.delivered >= 0.9 * 4 * KB * 120


@pytest.mark.parametrize(("rate", "delay"), [(100 * MB, 0.001), (20 * MB, 0.04), (10 * MB, 0.1), (3 * MB, 0.3)])
def test_a_fast_long_way_is_filled_within_seconds(rate, delay):
    way = Way(rate, delay)
    way.flood(5)
    assert way.window.size >= min(rate * delay, LIMITS.output_window_max)
    before = way.delivered
    way.flood(5)
    assert way.delivered - before >= 0.85 * min(rate, LIMITS.output_window_max / (delay + STEP)) * 5


def test_a_queue_of_others_at_the_handshake_does_not_become_ours():
    way = Way(64 * KB, 0.05, handshake=30.0)
    way.flood(20)
    assert way.wait <= LONGEST_ROUND_TRIP + 1.5 * SPARE


def test_it_follows_a_way_that_becomes_slow_and_fast_again():
    way = Way(5 * MB, 0.02)
    way.flood(5)
    way.rate = 50 * KB
    way.flood(30)
    assert way.wait <= 0.02 + 1.5 * SPARE
    way.rate = 5 * MB
    way.flood(5)
    assert way.window.size == LIMITS.output_window_max


def test_acknowledgements_that_come_all_at_once_raise_nothing_for_long():
    way = Way(64 * KB, 0.05)
    way.flood(20)
    for _ in range(20):
        way.held = True
        way.flood(2)
        way.held = False
        way.flood(2)
    assert way.wait <= 3 * SPARE
    way.flood(5)
    assert way.wait <= 0.05 + 1.5 * SPARE


def test_keys_that_are_echoed_and_a_screen_now_and_then_change_nothing():
    """Little in flight tells nothing of a larger window, and a stutter under it nothing of a smaller one."""
    way = Way(MB, 0.05)
    for number in range(200):
        way.send(20 * KB if number % 50 == 0 else 3)
        way.held = number == 125  # for three seconds
        for _ in range(600 if way.held else 10):
            way.step()
    assert way.window.size == LIMITS.output_window


def test_a_way_that_is_fast_for_a_moment_is_not_flooded_for_long():
    way = Way(64 * KB, 0.02, burst=100 * KB)
    way.flood(20)
    assert way.wait <= 3 * SPARE


@given(st.integers(0, 2**32), st.floats(1e3, 1e9), st.floats(0.0001, 5))
def test_within_its_bounds_and_never_stuck_on_any_way(seed, rate, delay):
    """Rate, delay and gaps change all the time; whatever the window learned, everything gets through."""
    chance = random.Random(seed)
    way = Way(rate, delay, handshake=chance.choice([delay, 0.0, -5.0, 1e6]))
    for _ in range(6):
        way.rate = rate * chance.uniform(0.05, 2)
        way.delay = delay * chance.uniform(0.1, 2)
        way.held = chance.random() < 0.2
        way.flood(0.25)
        assert len(way.window._probes) <= 64
    way.held, way.rate, way.delay = False, 10 * MB, 0.01
    for _ in range(3000):
        if not way.counts.in_flight:
            break
        way.step()
    assert way.counts.in_flight == 0
    assert way.counts.credit(way.window.size) == way.window.size


@given(st.lists(st.tuples(st.integers(0, 100_000), st.floats(-1e9, 1e9)), max_size=60))
def test_a_clock_that_jumps_breaks_nothing(steps):
    window, counts = OutputWindow(LIMITS, -1.0), Departures()
    for count, now in steps:
        counts.send(min(count, counts.credit(window.size)))
        window.sent(counts.sent, counts.in_flight, now)
        counts.acknowledge(counts.sent - counts.in_flight // 2)
        window.acknowledged(counts.acknowledged, -now)
        assert LIMITS.output_window_min <= window.size <= LIMITS.output_window_max


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 10**6))
def test_bounds_of_the_operator_hold(one, other, third):
    least, start, most = sorted((one, other, third))
    window = OutputWindow(replace(LIMITS, output_window=start, output_window_min=least, output_window_max=most), 0.01)
    assert window.size == start
    for position, took in ((start, 1e-9), (3 * start, 100.0), (5 * start, 1e-9)):
        window.sent(position, start, 0.0)
        window.acknowledged(position, took)
        assert least <= window.size <= most
