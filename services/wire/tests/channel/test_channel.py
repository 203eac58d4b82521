"""Both ends together, against a simple model: what was typed is written, what was printed is shown, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from bothy_wire.channel import Limits
from bothy_wire.errors import ChannelError

LIMITS = Limits(input_window=40, output_window=64)


def bytes_from(counter: int, count: int) -> bytes:
    """Bytes that differ from their neighbours, so that a lost or doubled one shows."""
    return bytes((counter + i) % 251 for i in range(count))


def test_any_interleaving_with_any_losses_of_the_pairing(make_world):
    class Session(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.world = make_world(LIMITS)
            self.device, self.host = self.world.device, self.world.host
            self.counter = 0
            self.typed = bytearray()
            self.paired = False
            self.openings = 0

        # what people, programs and networks do

        @rule(count=st.integers(1, 100))
        def type(self, count):
            self.counter += count
            data = bytes_from(self.counter, count)
            self.typed += data
            self.device.end.write(data)
            self.world.collect()

        @precondition(lambda self: self.host.exit_status is None)
        @rule(count=st.integers(1, 200))
        def print(self, count):
            self.counter += count
            self.host.printed += bytes_from(self.counter, count)
            self.host.send()
            self.world.collect()

        @precondition(lambda self: self.counter > 500)
        @rule()
        def exit(self):
            self.host.exit_status = 7
            self.host.send()
            self.world.collect()

        @rule(count=st.integers(1, 5))
        def show(self, count):
            self.device.show(count)
            self.host.send()
            self.world.collect()

        @rule(count=st.integers(1, 60))
        def write(self, count):
            self.host.write(count)
            self.world.collect()

        @rule(to_host=st.integers(0, 4), to_device=st.integers(0, 4))
        def carry(self, to_host, to_device):
            self.world.carry(to_host, to_device)
            for opened in self.device.opened[self.openings :]:
                del self.typed[len(self.typed) - opened.dropped_input :]
            self.openings = len(self.device.opened)

        @rule()
        def drop_unsent(self):
            dropped = self.device.end.drop_unsent()
            del self.typed[len(self.typed) - dropped :]

        @rule(columns=st.integers(0, 1001))
        def resize(self, columns):
            self.device.end.resize(columns, 24)
            self.world.collect()

        @rule()
        def ping(self):
            self.device.end.ping(self.world.now)
            self.device.end.flush()
            self.world.collect()

        @rule()
        def lose(self):
            self.paired = False
            self.world.unpair()

        @precondition(lambda self: not self.paired)
        @rule(held=st.integers(0, 150))
        def pair(self, held):
            self.host.held_from = max(0, len(self.host.printed) - held)
            self.paired = True
            self.world.pair()

        # what always holds

        @invariant()
        def nothing_is_written_that_was_not_typed(self):
            arrived = self.host.pty + self.host.unwritten
            assert self.typed[: len(arrived)] == arrived

        @invariant()
        def no_window_is_broken(self):
            assert len(self.host.unwritten) <= LIMITS.input_window
            # The second window may wait from before a repaint.
            assert self.device.held <= 2 * LIMITS.output_window

        def teardown(self):
            if self.paired:
                self.lose()
            self.pair(held=150)
            while self.world.to_host or self.world.to_device:
                self.carry(1, 1)
            self.world.settle()
            assert self.host.pty == self.typed
            assert self.device.terminal == self.host.printed
            assert self.device.end.pending_input == 0
            if self.host.exit_status is not None:
                assert self.device.exits[-1] == 7
                assert self.host.end.exit_acknowledged
            assert self.host.end.acknowledged == self.host.end.output_position

    run_state_machine_as_test(Session, settings=settings(max_examples=150, stateful_step_count=60, deadline=None))


def test_megabytes_in_both_directions(world):
    typed, printed = bytes_from(3, 1_000_003), bytes_from(9, 3_000_001)
    world.device.end.write(typed)
    world.host.printed += printed
    world.host.exit_status = 0
    world.host.send()
    world.settle()
    assert world.host.pty == typed
    assert world.device.terminal == printed
    assert world.device.exits == [0]


def test_a_replayed_message_1_changes_nothing_on_the_host(make_world):
    world = make_world()
    world.device.end.write(b"ls\r")
    world.pair()
    message1 = world.to_host[0]
    world.settle()
    world.host.printed += b"a file\r\n"
    world.host.send()
    world.settle()
    world.unpair()
    end = world.host.end
    before = (end.lineage, end.acknowledged, end.output_position)

    end.paired(world.now)
    world.host.receive(message1, world.now)
    end.take_outgoing()
    with pytest.raises(ChannelError):
        end.receive(bytes(40), world.now)
    assert not end.open
    assert (end.lineage, end.acknowledged, end.output_position) == before
    assert world.host.sizes == [(80, 24)]

    world.pair()
    world.device.end.write(b"w\r")
    world.settle()
    assert world.host.resumes == ["new", "new", "exact"]
    assert world.host.pty == b"ls\rw\r"


def test_paired_again_has_fresh_keys_and_old_records_are_refused(world):
    world.device.end.write(b"one")
    world.collect()
    old = list(world.to_host)
    world.unpair()
    world.pair()
    world.settle()
    assert world.host.pty == b"one"
    with pytest.raises(ChannelError):
        world.host.receive(old[0], world.now)
    assert world.host.pty == b"one"


def test_the_window_is_not_lost_with_the_acknowledgement(make_world):
    """A window that was full, and written while nobody was there to hear it, opens again."""
    world = make_world(Limits(input_window=10, output_window=10))
    world.pair()
    world.settle()
    world.device.end.write(bytes_from(0, 30))
    world.host.printed += bytes_from(0, 30)
    world.host.send()
    world.collect()
    world.carry(10, 10)
    for _ in range(20):
        world.host.write(100)
        world.device.show(100)
        world.unpair()
        world.pair()
        world.carry(10, 10)
        world.carry(10, 10)
        world.carry(10, 10)
    world.settle()
    assert world.host.pty == bytes_from(0, 30)
    assert world.device.terminal == world.host.printed


def test_another_device_in_between_makes_the_first_one_new(world):
    first, second = world.device, world.another_device()
    first.end.write(b"first")
    world.settle()
    world.unpair()
    first.end.write(b"typed in the outage")

    world.device = second
    world.pair()
    second.end.write(b"second")
    world.settle()
    world.unpair()

    world.device = first
    world.pair()
    world.settle()
    assert world.host.resumes == ["new", "new", "new"]
    assert first.opened[-1].dropped_input == len(b"typed in the outage")
    assert world.host.pty == b"firstsecond"
    first.end.write(b"again")
    world.settle()
    assert world.host.pty == b"firstsecondagain"
    assert first.end.pending_input == 0


def test_input_of_an_old_lineage_is_not_acknowledged_to_the_new_one(world):
    world.device.end.write(b"held up")
    world.collect()
    world.carry(10, 10)
    world.unpair()
    world.device = world.another_device()
    world.pair()
    for _ in range(3):
        world.carry(10, 10)
    world.device.end.write(b"xyz")
    world.collect()
    world.carry(10, 10)
    world.host.write(8)
    world.collect()
    world.carry(10, 10)
    assert world.device.end.pending_input == 2
    world.settle()
    assert world.device.end.pending_input == 0
    assert world.host.pty == b"held upxyz"
