"""Both ends together, against a simple model: what was typed is written, what was printed is shown, byte for byte."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bothy_wire.channel import Limits
from bothy_wire.errors import ChannelError

LIMITS = Limits(input_window=40, output_window=64, output_window_min=8, output_window_max=100)
ACTIONS = st.lists(
    st.tuples(
        # Weighted, so that a channel lives long enough to matter before it is lost.
        st.sampled_from(
            ["carry"] * 8
            + ["show", "write", "print"] * 3
            + ["type"] * 2
            + ["lose", "lose before it is open", "forget", "exit", "drop", "resize", "ping"]
        ),
        st.integers(1, 40),
    ),
    min_size=20,
    max_size=150,
)


def bytes_from(counter: int, count: int) -> bytes:
    """Bytes that differ from their neighbours, so that a lost or doubled one shows."""
    return bytes((counter + i) % 251 for i in range(count))


class Model:
    """Does what people, programs and networks do to a world, and knows what must come of it."""

    def __init__(self, world) -> None:
        self.world, self.device, self.host = world, world.device, world.host
        self.made = 0
        self.typed = bytearray()
        self.openings = 0
        world.pair()
        self.open()

    def act(self, action: str, count: int) -> None:
        self.world.now += count / 1000
        match action:
            case "type":
                data = self.make(count)
                self.typed += data
                self.device.end.write(data)
            case "print" if self.host.exit_status is None:
                self.host.printed += self.make(4 * count)
                self.host.send(self.world.now)
            case "exit" if self.made > 1000:
                self.host.exit_status = 7
                self.host.send(self.world.now)
            case "show":
                self.device.show(1 + count // 10)
            case "write":
                self.host.write(count)
            case "carry":
                self.carry(count % 4, count % 3)
            case "drop":
                self.dropped(self.device.end.drop_unsent())
            case "resize":
                self.device.end.resize(count, 24)
            case "ping":
                self.device.end.ping(self.world.now)
                self.device.end.flush()
            case "forget":
                self.host.held_from = max(0, len(self.host.printed) - count)
            case "lose":
                self.world.unpair()
                self.world.pair()
                self.open()
            case "lose before it is open":
                self.world.unpair()
                self.world.pair()
                for _ in range(count % 5):
                    self.carry(1, 1)
                self.act("lose", count)
        self.world.collect()
        self.check()

    def make(self, count: int) -> bytes:
        self.made += count
        return bytes_from(self.made, count)

    def open(self) -> None:
        """Carry the handshake and the first ACK."""
        for _ in range(3):
            self.carry(1, 1)

    def carry(self, to_host: int, to_device: int) -> None:
        self.world.carry(to_host, to_device)
        for opened in self.device.opened[self.openings :]:
            self.dropped(opened.dropped_input)
        self.openings = len(self.device.opened)

    def dropped(self, count: int) -> None:
        del self.typed[len(self.typed) - count :]

    def check(self) -> None:
        arrived = self.host.pty + self.host.unwritten
        assert self.typed[: len(arrived)] == arrived
        assert len(self.host.unwritten) <= LIMITS.input_window
        assert self.device.held <= LIMITS.output_window_max

    def finish(self) -> None:
        """With an open channel and nobody in the way, everything arrives."""
        while self.world.to_host or self.world.to_device:
            self.carry(1, 1)
        self.world.settle()
        assert self.host.pty == self.typed
        assert self.device.terminal == self.host.printed
        assert self.device.end.pending_input == 0
        assert self.host.end.acknowledged == self.host.end.output_position
        if self.host.exit_status is not None:
            assert self.device.exits
            assert self.host.end.exit_acknowledged


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=ACTIONS)
def test_any_interleaving_with_any_losses_of_the_pairing(make_world, actions):
    model = Model(make_world(LIMITS))
    for action, count in actions:
        model.act(action, count)
    model.finish()


def test_an_exact_resume_does_not_repeat_what_the_device_still_holds(make_world):
    world = make_world(LIMITS)
    world.pair()
    world.settle()
    world.host.printed += bytes_from(0, 40)
    world.host.send(world.now)
    world.settle()
    world.host.printed += bytes_from(40, 20)
    world.host.send(world.now)
    world.host.printed += bytes_from(60, 20)
    world.host.send(world.now)
    world.host.exit_status = 3
    world.host.send(world.now)
    world.collect()
    world.carry(10, 10)
    assert world.device.held == 40
    world.device.show(1)
    world.unpair()
    world.pair()
    world.device.show(1)  # the terminal goes on while the handshake is under way
    world.settle()
    assert world.host.resumes[-1] == "exact"
    assert world.device.terminal == bytes_from(0, 80)
    assert world.device.exits == [3]
    assert world.host.end.exit_acknowledged


def test_an_acknowledged_exit_is_not_sent_again(world):
    world.host.printed += b"done"
    world.host.send(world.now)
    world.settle()
    world.host.exit_status = 0
    world.host.send(world.now)
    world.collect()
    world.carry(10, 10)
    world.device.show(10)  # its ACK is lost
    world.unpair()
    world.pair()
    world.settle()
    assert world.host.resumes[-1] == "exact"
    assert world.host.end.exit_acknowledged
    assert world.device.exits == [0]


@pytest.mark.parametrize("reached", ["message 1", "message 2", "the first ACK", "a part of the repaint"])
def test_a_repaint_that_did_not_arrive_leaves_no_gap(make_world, reached):
    """The position that a repaint jumps to counts for nothing until the repaint was seen."""
    world = make_world()
    world.pair()
    world.settle()
    world.host.printed += bytes_from(0, 100)
    world.host.send(world.now)
    world.settle()
    world.host.printed += bytes_from(100, 100_000)
    world.host.send(world.now)  # all of it is sent, none arrives
    world.unpair()

    world.host.held_from = len(world.host.printed)
    world.pair()
    steps = ["message 1", "message 2", "the first ACK", "a part of the repaint"].index(reached)
    for step in range(steps + 1):
        world.carry(step % 2 == 0, 2 if step == 3 else step % 2)
    world.unpair()

    world.pair()
    world.settle()
    assert world.host.resumes[1:] == ["repaint", "repaint"]
    assert world.device.terminal == world.host.printed


def test_what_a_short_exact_channel_did_not_repeat_is_still_known(make_world):
    """The device processed more than the second channel sent again; the third one is exact all the same."""
    world = make_world()
    world.pair()
    world.settle()
    world.host.printed += b"shown"
    world.host.send(world.now)
    world.settle()
    world.host.printed += b"on its way"
    world.host.send(world.now)
    world.collect()
    world.carry(10, 10)
    world.unpair()
    world.pair()
    for _ in range(2):
        world.carry(1, 1)
    assert world.device.end.open
    world.device.show(10)
    world.unpair()
    world.pair()
    world.settle()
    assert world.host.resumes[1:] == ["exact", "exact"]
    assert world.device.terminal == b"shownon its way"


def test_megabytes_in_both_directions(world):
    typed, printed = bytes_from(3, 1_000_003), bytes_from(9, 3_000_001)
    world.device.end.write(typed)
    world.host.printed += printed
    world.host.exit_status = 0
    world.host.send(world.now)
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
    world.host.send(world.now)
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
    world = make_world(Limits(input_window=10, output_window=10, output_window_min=10, output_window_max=10))
    world.pair()
    world.settle()
    world.device.end.write(bytes_from(0, 30))
    world.host.printed += bytes_from(0, 30)
    world.host.send(world.now)
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


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_no_credit_is_lost_over_two_hundred_cuts_at_any_message(make_world, seed):
    """Both windows are full, the pairing is cut behind any message, and after each cut everything flows again."""
    chance = random.Random(seed)
    world = make_world(LIMITS)
    world.pair()
    world.settle()
    typed = b""
    for number in range(200):
        keys = bytes_from(number, 3 * LIMITS.input_window)
        typed += keys
        world.device.end.write(keys)
        world.host.printed += bytes_from(number, 3 * LIMITS.output_window_max)
        world.host.send(world.now)
        for _ in range(chance.randrange(30)):
            world.now += chance.random()
            world.collect()
            world.carry(chance.randrange(3), chance.randrange(3))
            world.device.show(chance.randrange(3))
            world.host.write(chance.randrange(20))
            world.host.send(world.now)
        world.unpair()
        if chance.random() < 0.3:  # and again, within the handshake
            world.pair()
            for _ in range(chance.randrange(4)):
                world.carry()
            world.unpair()
        world.pair()
        while not world.host.end.open:
            world.now += 0.01
            world.carry()
        end = world.host.end
        left = len(world.host.printed) - end.acknowledged
        assert end.output_position - end.acknowledged == min(LIMITS.output_window, left)  # a whole one at once
        world.settle()
        assert world.device.terminal == world.host.printed
        assert world.host.pty == typed
        assert LIMITS.output_window_min <= end.output_credit <= LIMITS.output_window_max


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
