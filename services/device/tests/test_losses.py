"""Any order of losses between a session and a real host end: nothing is typed twice, shown twice, or lost without a word."""

import re
import uuid
from collections import deque

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from bothy_device import reconnect
from bothy_device.events import (
    Accepted,
    Attach,
    Attached,
    Bell,
    Closed,
    Dial,
    Discard,
    HangUp,
    Leave,
    Received,
    Refused,
    Resized,
    Say,
    Show,
    Tick,
    Typed,
    Unreached,
    Written,
)
from bothy_device.session import Session
from bothy_device.waiting import Limits
from bothy_device.way import Way
from bothy_wire.backoff import Backoff
from bothy_wire.channel import device_end, flow, host_end
from bothy_wire.frames import SidePaired, SideUnpaired

SESSION, HOST = uuid.UUID(int=1), uuid.UUID(int=2)
RESET = b"\x1bc"
CODES = (1006, 1009, 1011, 1012, 1013, 4009, 4102, 4104, 4106, 4107, 4108, 4109)
LIMITS = flow.Limits(input_window=16)
BUFFER = 24


def device(key):
    return device_end.DeviceEnd(
        channel_key=X25519PrivateKey.generate(),
        host_channel_key=key.public_key().public_bytes_raw(),
        session_id=SESSION,
        host_id=HOST,
        profile="shell",
        session_user="alex",
        term="xterm",
        limits=LIMITS,
    )


class Host:
    """Keeps all output; a repaint is a reset and all of it."""

    def __init__(self, key):
        self.end = host_end.HostEnd(channel_key=key, session_id=SESSION, host_id=HOST, limits=LIMITS)
        self.printed, self.typed, self.unwritten = bytearray(), bytearray(), 0
        self.held_from = self.next = self.lineages = 0

    def receive(self, message, now):
        for event in self.end.receive(message, now):
            match event:
                case host_end.Offered(message1):
                    self._answer(message1, now)
                case host_end.Opened():
                    self.next = self.end.output_position
                    if self.resume != "exact":
                        self.end.repaint(RESET + self.printed[: self.next])
                case host_end.Input(data):
                    self.typed += data
                    self.unwritten += len(data)
        self.send(now)

    def _answer(self, message1, now):
        self.resume = self.end.resume_of(message1, self.held_from)
        if self.resume == "exact":
            self.end.accept("exact", message1.lineage, message1.output_processed, now)
            return
        self.lineages += self.resume == "new"
        self.end.accept(self.resume, self.lineages.to_bytes(16, "big"), len(self.printed), now)

    def send(self, now):
        if self.end.open:
            data = bytes(self.printed[self.next : self.next + self.end.output_credit])
            self.end.output(data, now)
            self.next += len(data)


class World:
    """A session, a host, and two queues that a loss empties."""

    def __init__(self):
        key = X25519PrivateKey.generate()
        self.key, self.now, self.host, self.end = key, 0.0, Host(key), device(key)
        way = Way(
            reconnect.start(0.0, 60.0),
            backoff=Backoff(),
            chance=lambda: 0.5,
            session_id=SESSION,
            host="lab-1",
            person=True,
        )
        self.session = Session(
            self.end,
            session_id=SESSION,
            host_name="lab-1",
            escape=b"",
            size=Resized(80, 24),
            limits=Limits(paste_bytes=1000, input_buffer_bytes=BUFFER, fail_grace=1.0),
            now=0.0,
            way=way,
        )
        self.to_host, self.to_device = deque(), deque()
        self.terminal, self.unshown = bytearray(), bytearray()
        self.expected = bytearray()  # what the session took from the keyboard and did not take back
        self.wants, self.paired = Dial(), False
        self.left = None
        self.next_key = 0

    # ---- the session

    def feed(self, event):
        effects = self.session.handle(event, self.now)
        for effect in effects:
            match effect:
                case Dial() | Attach():
                    self.wants = effect
                case HangUp():
                    self.cut_wires()
                case Show(data):
                    self.unshown += data
                case Discard():
                    count = len(self.unshown)
                    self.unshown.clear()
                    self.feed(Written(count))
                case Leave():
                    self.left = effect
                case Say(text) if told := re.match(r"(\d+) bytes that you typed were not sent", text):
                    self.taken_back(int(told[1]))
        self.to_host += [each for each in self.session.take_outgoing() if isinstance(each, bytes)]
        return effects

    def taken_back(self, count):
        """The end of what was typed is lost with its lineage, and of that the host may have some."""
        certain = self.expected[: len(self.expected) - count]
        assert self.expected.startswith(self.host.typed)
        assert self.host.typed.startswith(certain)
        self.expected = bytearray(self.host.typed)

    # ---- what may happen

    def type(self, count):
        keys = bytes(0x30 + (self.next_key + each) % 64 for each in range(count))
        before = self.end.pending_input
        effects = self.feed(Typed(keys))
        accepted = max(0, self.end.pending_input - before)
        if accepted < count and not self.end.open:
            assert Bell() in effects
        self.expected += keys if self.end.open else keys[:accepted]
        self.next_key += count

    def control(self, key):
        before, was_open = self.end.pending_input, self.end.open
        self.feed(Typed(key))
        after = self.end.pending_input
        if was_open or after > before:
            self.expected += key
        elif after < before:
            del self.expected[len(self.expected) - (before - after) :]

    def print(self, count):
        self.host.printed += bytes(0x61 + (len(self.host.printed) + each) % 26 for each in range(count))
        self.host.send(self.now)

    def show(self, count):
        shown, self.unshown = self.unshown[:count], self.unshown[count:]
        self.terminal += shown
        self.feed(Written(len(shown)))

    def write(self):
        self.host.end.written(self.host.unwritten)
        self.host.unwritten = 0

    def carry(self, count):
        for _ in range(count):
            self.to_device += self.host.end.take_outgoing()
            if self.to_host:
                self.host.receive(self.to_host.popleft(), self.now)
            if self.to_device:
                self.feed(Received(self.to_device.popleft()))

    def cut_wires(self):
        self.to_host.clear()
        self.to_device.clear()
        self.host.end.unpaired()
        self.paired = False

    def cut(self, code):
        self.cut_wires()
        self.feed(Closed(code, ""))

    def unpair(self):
        if self.paired:
            self.cut_wires()
            self.feed(Received(SideUnpaired()))

    def meet(self):
        """Whatever the session wants works, or is there already."""
        if self.wants and isinstance(self.wants, Attach):
            self.feed(Attached(self.now + 60.0))
        if isinstance(self.wants, Dial):
            self.wants = None
            self.feed(Accepted())
        if self.session._way.up and not self.paired:
            self.paired = True
            self.host.end.paired(self.now)
            self.feed(Received(SidePaired(session_token="token")))

    def miss(self, local):
        if self.wants:
            attach = isinstance(self.wants, Attach)
            self.wants = None
            self.feed(Refused("host_unavailable", "") if local and attach else Unreached(local=local, text=""))

    def elsewhere(self):
        """Another device takes the session and types nothing."""
        if self.session._way.up:
            self.cut(4103)
        other = device(self.key)
        self.cut_wires()
        self.host.end.paired(self.now)
        other.pair("token", 80, 24, self.now)
        for _ in range(4):
            for message in other.take_outgoing():
                self.host.receive(message, self.now)
            for message in self.host.end.take_outgoing():
                other.receive(message, self.now)
        self.host.end.unpaired()

    def wait(self, seconds):
        self.now += seconds
        while (due := self.session.deadline()) is not None and due <= self.now and self.left is None:
            self.feed(Tick())


COUNT = st.integers(1, 12)
OPERATIONS = st.one_of(
    st.tuples(st.just("type"), COUNT),
    st.tuples(st.just("control"), st.sampled_from([b"\r", b"\x03"])),
    st.tuples(st.just("print"), COUNT),
    st.tuples(st.just("show"), COUNT),
    st.tuples(st.just("carry"), COUNT),
    st.tuples(st.just("carry"), COUNT),
    st.tuples(st.just("cut"), st.sampled_from(CODES)),
    st.tuples(st.just("miss"), st.booleans()),
    st.tuples(st.just("wait"), st.sampled_from([0.1, 1.0, 3.0, 30.0])),
    st.sampled_from([("write",), ("unpair",), ("meet",), ("meet",), ("elsewhere",)]),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(OPERATIONS, max_size=60))
def test_nothing_is_typed_twice_shown_twice_or_lost_without_a_word(operations):
    world = World()
    world.meet()
    world.carry(8)
    for name, *arguments in operations:
        getattr(world, name)(*arguments)
        if world.left:
            break
    if world.left:  # a person gave up, which they are told
        lost = re.search(r"the last (\d+) key", world.left.message)
        count = int(lost[1]) if lost else 0
        assert world.host.typed.startswith(world.expected[: len(world.expected) - count])
        assert world.expected.startswith(world.host.typed)
        return
    for _ in range(40):
        world.wait(20.0)
        world.control(b"\r")  # takes a session back that is elsewhere
        world.meet()
        for _ in range(20):
            world.carry(20)
            world.show(1000)
            world.write()
    assert bytes(world.host.typed) == bytes(world.expected)
    assert bytes(world.terminal[world.terminal.rindex(RESET) + len(RESET) :]) == bytes(world.host.printed)
