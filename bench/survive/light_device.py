"""A device without a terminal: the real channel over the real sockets, and a key every second."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from uuid import UUID

import httpx2 as httpx
from ends import ABNORMAL, Patience, carry, pattern
from websockets.exceptions import ConnectionClosed, WebSocketException

from bothy_kit.fake_device import FakeDevice, Stream
from bothy_wire.channel import DeviceEnd, Limits
from bothy_wire.channel.device_events import InputAcknowledged, Opened, Output, Repaint
from bothy_wire.close_codes import retry_of
from bothy_wire.frames import Decoder, SidePaired, SideReady, SideUnpaired, encode
from bothy_wire.ids import HostId

_frames = Decoder(SidePaired | SideUnpaired)
_KEY_S = 1.0
_TOKEN_S = 45.0
"""A stream token that is older is not shown again."""
_ATTACH_TRIES = 100


@dataclass(slots=True)
class Figures:
    """What one session saw."""

    received: int = 0
    wrong: int = 0
    """Bytes that did not belong where they came."""
    typed: int = 0
    acknowledged: int = 0
    repaints: int = 0
    gaps_s: list[float] = field(default_factory=list)
    """From the loss of a pairing to the first key that the host took again."""
    ended: int | None = None
    """The close code after which it may not come back."""


class LightDevice:
    """One session of ``device``."""

    def __init__(self, device: FakeDevice, host_id: HostId) -> None:
        self._device = device
        self._host_id = host_id
        self._figures = Figures()
        self._patience = Patience("stream")
        self._stirred = asyncio.Event()
        self._ready_due = False
        self._lost_at: float | None = None
        self._end: DeviceEnd | None = None
        self.session_id: UUID | None = None
        self.open = asyncio.Event()

    @property
    def figures(self) -> Figures:
        """As of now."""
        return self._figures

    async def run(self) -> None:
        """Until cancelled, or until a close code says never."""
        stream = await self._device.open(self._host_id)
        self.session_id, token_at = stream.session_id, time.monotonic()
        self._end = DeviceEnd(
            channel_key=self._device.channel_key,
            host_channel_key=stream.host_channel_key,
            session_id=stream.session_id,
            host_id=self._host_id,
            profile="shell",
            session_user="alex-shell",
            term="dumb",
            limits=Limits(),
        )
        while True:
            code = await self._dial(stream)
            self._lose()
            if not await self._patience.wait(code):
                self._figures.ended = code
                return
            if retry_of(code, "stream") == "attach" or time.monotonic() - token_at > _TOKEN_S:
                stream, token_at = await self._attach(stream), time.monotonic()

    async def type(self) -> None:
        """Keys at a steady pace, also while nobody is there."""
        await asyncio.sleep(random.random() * _KEY_S)
        while True:
            self._key()
            await asyncio.sleep(_KEY_S)

    async def _attach(self, stream: Stream) -> Stream:
        for _ in range(_ATTACH_TRIES):
            try:
                return await self._device.attach(stream.session_id)
            except (AssertionError, ValueError, httpx.HTTPError):  # another answer, none in JSON, or none at all
                await self._patience.wait(1013)
        raise TimeoutError("nobody takes an attach")

    async def _dial(self, stream: Stream) -> int:
        try:
            side = await self._device.dial(stream)
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else ABNORMAL
        except (OSError, WebSocketException, TimeoutError):
            return ABNORMAL
        try:
            return await carry(side.socket, self._receive, self._outgoing, self._stirred)
        finally:
            side.cut()

    def _receive(self, message: str | bytes) -> None:
        assert self._end is not None
        now = time.monotonic()
        if isinstance(message, str):
            match _frames.decode(message):
                case SidePaired(session_token=str() as token):
                    self._end.pair(token, 80, 24, now)
                case SideUnpaired():
                    self._lose()
                    self._ready_due = True
            return
        for event in self._end.receive(message, now):
            match event:
                case Opened():
                    self._patience.settled()
                    self.open.set()
                    self._key()
                case Output(data):
                    good = pattern(self._figures.received, len(data))
                    self._figures.wrong += sum(a != b for a, b in zip(data, good, strict=True)) if data != good else 0
                    self._figures.received += len(data)
                    self._end.processed(len(data))
                case Repaint():
                    self._figures.repaints += 1
                case InputAcknowledged(position) if position > self._figures.acknowledged:
                    self._figures.acknowledged = position
                    if self._lost_at is not None:
                        self._figures.gaps_s.append(now - self._lost_at)
                        self._lost_at = None

    def _outgoing(self) -> list[str | bytes]:
        assert self._end is not None
        due = [encode(SideReady())] if self._ready_due else []
        self._ready_due = False
        return [*due, *self._end.take_outgoing()]

    def _lose(self) -> None:
        assert self._end is not None
        if self._end.opened_once and self._lost_at is None:
            self._lost_at = time.monotonic()
        self._end.unpaired()

    def _key(self) -> None:
        if self._end is not None and self._end.opened_once:
            self._end.write(pattern(self._figures.typed, 1))
            self._figures.typed += 1
            self._stirred.set()
