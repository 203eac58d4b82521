"""A device and a host with small shells around their ends, joined by a pipe that loses nothing and keeps the order."""

from __future__ import annotations

from collections import deque
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from bothy_wire.channel import DeviceEnd, HostEnd, Limits, device_end, host_end

SESSION, HOST = UUID("01890a5d-ac96-774b-bcce-b302099a8057"), UUID("01890a5d-ac97-7c0a-9f2e-1d2c3b4a5968")


class HostShell:
    """Keeps all that the program printed; a repaint is simply all of it, so a terminal can be compared byte by byte."""

    def __init__(self, key: X25519PrivateKey, limits: Limits) -> None:
        self.end = HostEnd(channel_key=key, session_id=SESSION, host_id=HOST, limits=limits)
        self.printed = bytearray()
        self.held_from = 0
        self.exit_status: int | None = None
        self.unwritten = bytearray()
        self.pty = bytearray()
        self.sizes: list[tuple[int, int]] = []
        self.resumes: list[str] = []
        self.lineages = 0
        self._next = 0  # output position to send

    def receive(self, message: bytes, now: float) -> list[host_end.HostEvent]:
        events = self.end.receive(message, now)
        for event in events:
            match event:
                case host_end.Offered(message1):
                    self.answer(message1, now)
                case host_end.Opened(columns, rows):
                    self.sizes.append((columns, rows))
                    self._next = self.end.output_position
                    if self.resumes[-1] != "exact":
                        self.end.repaint(bytes(self.printed[: self._next]))
                case host_end.Input(data):
                    self.unwritten += data
                case host_end.Resized(columns, rows):
                    self.sizes.append((columns, rows))
        self.send(now)
        return events

    def answer(self, message1, now: float) -> None:
        resume = self.end.resume_of(message1, self.held_from)
        self.resumes.append(resume)
        if resume == "exact":
            self.end.accept(resume, message1.lineage, message1.output_processed, now)
        elif resume == "repaint":
            self.end.accept(resume, message1.lineage, len(self.printed), now)
        else:
            self.lineages += 1
            self.end.accept(resume, self.lineages.to_bytes(16, "big"), len(self.printed), now)

    def send(self, now: float) -> None:
        """Print what the window allows, then the exit status."""
        data = bytes(self.printed[self._next : self._next + self.end.output_credit])
        self.end.output(data, now)
        self._next += len(data)
        # At a position behind the last byte the device has the exit status already.
        if self.end.open and self.exit_status is not None and self._next == len(self.printed):
            self.end.exit(self.exit_status)
            self._next += 1

    def write(self, count: int) -> None:
        """The pseudo-terminal takes some bytes."""
        data = self.unwritten[:count]
        del self.unwritten[:count]
        self.pty += data
        self.end.written(len(data))


class DeviceShell:
    """Shows events in order, as its terminal takes them."""

    def __init__(self, key: X25519PrivateKey, host_key: bytes, limits: Limits) -> None:
        self.end = DeviceEnd(
            channel_key=key,
            host_channel_key=host_key,
            session_id=SESSION,
            host_id=HOST,
            profile="shell",
            session_user="alex-shell",
            term="xterm-256color",
            limits=limits,
        )
        self.unshown: deque[device_end.Output | device_end.Repaint | device_end.Exited] = deque()
        self.terminal = bytearray()
        self.exits: list[int] = []
        self.notices: list[str] = []
        self.opened: list[device_end.Opened] = []
        self._repaint = bytearray()
        self._repainting = False  # pieces of the repaint of this channel are on their way

    def gone(self) -> None:
        """The pairing ended."""
        self.end.unpaired()
        self._repainting = False

    def receive(self, message: bytes, now: float) -> list[device_end.DeviceEvent]:
        events = self.end.receive(message, now)
        for event in events:
            match event:
                case device_end.Opened():
                    self.opened.append(event)
                case device_end.Notice(text):
                    self.notices.append(text)
                case device_end.Repaint(_, last):
                    if not self._repainting:
                        self._drop_unshown()
                    self._repainting = not last
                    self.unshown.append(event)
                case device_end.Output() | device_end.Exited():
                    self.unshown.append(event)
        return events

    def _drop_unshown(self) -> None:
        """The repaint stands for it."""
        exits = sum(isinstance(each, device_end.Exited) for each in self.unshown)
        self.end.processed(self.held + exits)
        self.unshown.clear()
        self._repaint.clear()

    @property
    def held(self) -> int:
        """Bytes of output that wait for the terminal."""
        return sum(len(each.data) for each in self.unshown if isinstance(each, device_end.Output))

    def show(self, count: int) -> None:
        """The terminal takes ``count`` events."""
        for _ in range(min(count, len(self.unshown))):
            match self.unshown.popleft():
                case device_end.Output(data):
                    self.terminal += data
                    self.end.processed(len(data))
                case device_end.Repaint(data, last):
                    self._repaint += data
                    if last:
                        self.terminal, self._repaint = self._repaint, bytearray()
                case device_end.Exited(status):
                    self.exits.append(status)
                    self.end.processed(1)


class World:
    """One session between a device and a host, and the relay's pipe between them."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.session_id, self.host_id = SESSION, HOST
        self.host_key = X25519PrivateKey.generate()
        self.now = 0.0
        self.host = HostShell(self.host_key, self.limits)
        self.device = self.another_device()
        self.to_host: deque[bytes] = deque()
        self.to_device: deque[bytes] = deque()

    def another_device(self) -> DeviceShell:
        """A device with a key of its own."""
        return DeviceShell(X25519PrivateKey.generate(), self.host_key.public_key().public_bytes_raw(), self.limits)

    def pair(self, columns: int = 80, rows: int = 24) -> None:
        self.host.end.paired(self.now)
        self.device.end.pair("header.claims.signature", columns, rows, self.now)
        self.collect()

    def unpair(self) -> None:
        """The pairing ends; what is under way is dropped, as the node does."""
        self.to_host.clear()
        self.to_device.clear()
        self.host.end.unpaired()
        self.device.gone()

    def collect(self) -> None:
        self.to_host += self.device.end.take_outgoing()
        self.to_device += self.host.end.take_outgoing()

    def carry(self, to_host: int = 1, to_device: int = 1) -> None:
        """Bring some messages to each side."""
        for _ in range(min(to_host, len(self.to_host))):
            self.host.receive(self.to_host.popleft(), self.now)
        for _ in range(min(to_device, len(self.to_device))):
            self.device.receive(self.to_device.popleft(), self.now)
        self.collect()

    def settle(self) -> None:
        """Let everything that can move move."""
        self.collect()
        while self.to_host or self.to_device or self.device.unshown or self.host.unwritten:
            self.carry(len(self.to_host), len(self.to_device))
            self.device.show(len(self.device.unshown))
            self.host.write(len(self.host.unwritten))
            self.host.send(self.now)
            self.collect()


@pytest.fixture
def make_world():
    """The class itself: property tests need a fresh world for each example."""
    return World


@pytest.fixture
def world() -> World:
    """A world whose channel is open."""
    world = World()
    world.pair()
    world.settle()
    return world
