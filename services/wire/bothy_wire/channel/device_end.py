"""The device's end of the end-to-end channel, without I/O and without a clock.

Time is an argument (``now``: steady seconds). The shell calls :meth:`DeviceEnd.take_outgoing` when its socket took what it
gave before: what waits is one ACK, one size, one PING and the input window, so a relay that does not read costs no memory.
A pairing has one state object, which goes with it; what lives longer (positions, what was typed) is in the end
itself.

What message 2 says takes effect in two steps. Input follows at once, because the host may receive it from now on. The
count of output follows with the host's first record, which proves that the host took the change too: a channel that is
lost before that leaves no gap that the next one would not repeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from bothy_wire.channel import records
from bothy_wire.channel.device_events import (
    DeviceEvent,
    Exited,
    InputAcknowledged,
    Notice,
    Opened,
    Output,
    Pong,
    Refusal,
    Repaint,
)
from bothy_wire.channel.flow import Arrivals, Limits
from bothy_wire.channel.handshake import (
    Accepted,
    Message1,
    Refused,
    decode_message2,
    encode_payload,
    prologue,
)
from bothy_wire.channel.input_queue import InputQueue
from bothy_wire.channel.noise import Initiator
from bothy_wire.channel.records import Opener, Sealer
from bothy_wire.errors import ChannelError
from bothy_wire.limits import OUTPUT_WINDOW_BYTES, REPAINT_TOTAL_BYTES

__all__ = [
    "DeviceEnd",
    "DeviceEvent",
    "Exited",
    "InputAcknowledged",
    "Notice",
    "Opened",
    "Output",
    "Pong",
    "Refusal",
    "Repaint",
]


@dataclass(slots=True)
class _Greeting:
    """Message 1 went out."""

    initiator: Initiator
    presented: int  # the output position of message 1
    deadline: float


@dataclass(slots=True)
class _Channel:
    """The channel is open. The flags say what goes out next."""

    sealer: Sealer
    opener: Opener
    restart_at: int | None  # output counts anew from here with the host's first record
    acknowledged: int  # output position of the last ACK
    ack_due: bool = True  # the first record is always an ACK
    ping_due: bool = False
    pinged_at: float | None = None
    repainting: bool = False
    repaint_room: int = REPAINT_TOTAL_BYTES
    exited: bool = False


class _Over:
    """The channel failed or was refused: binary is ignored until the pairing ends."""


class DeviceEnd:
    """One session as the device sees it; lives over many pairings."""

    def __init__(
        self,
        *,
        channel_key: X25519PrivateKey,
        host_channel_key: bytes,
        session_id: UUID,
        host_id: UUID,
        profile: str,
        session_user: str,
        term: str,
        limits: Limits,
    ) -> None:
        self._channel_key = channel_key
        self._host_channel_key = host_channel_key
        self._prologue = prologue(session_id, host_id)
        self._profile, self._session_user, self._term = profile, session_user, term
        self._limits = limits
        self._state: _Greeting | _Channel | _Over | None = None
        self._messages: list[bytes] = []
        self._size: tuple[int, int] | None = None  # to send
        self._lineage: bytes | None = None
        self._lineage_heard = False  # the host said something under it, so it is the host's too
        self._input = InputQueue(limits.input_window)
        self._printed = Arrivals(OUTPUT_WINDOW_BYTES)
        self._round_trip: float | None = None
        self._opened_once = False

    # ---- the pairing

    def pair(self, session_token: str, columns: int, rows: int, now: float) -> None:
        """``side.paired`` came: start a fresh handshake. Raises :class:`ChannelError` for a host key that is none."""
        self.unpaired()
        presented = self._printed.settled
        message1 = Message1(
            token=session_token,
            profile=self._profile,
            session_user=self._session_user,
            columns=columns,
            rows=rows,
            term=self._term,
            lineage=self._lineage,
            output_processed=presented,
            input_sent=self._input.sent,
        )
        initiator = Initiator(self._channel_key, self._host_channel_key, self._prologue)
        self._messages.append(initiator.write(encode_payload(message1)))
        self._state = _Greeting(initiator, presented, now + self._limits.handshake_timeout)

    def unpaired(self) -> None:
        """``side.unpaired`` came or the socket is lost: the channel is gone, the counts and what was typed are kept."""
        self._state = None
        self._size = None  # the next message 1 carries the size of its time
        self._messages.clear()

    def deadline(self) -> float | None:
        """When the handshake must be done; the shell closes with 4107 after it."""
        return self._state.deadline if isinstance(self._state, _Greeting) else None

    @property
    def open(self) -> bool:
        """Whether a channel is open."""
        return isinstance(self._state, _Channel)

    @property
    def opened_once(self) -> bool:
        """Whether a channel was ever open."""
        return self._opened_once

    # ---- messages

    def receive(self, message: bytes, now: float) -> list[DeviceEvent]:
        """One binary frame. Raises :class:`ChannelError` once; after it nothing more is shown in this pairing."""
        try:
            return list(self._events(message, now))
        except ChannelError:
            self._state = _Over()
            self._messages.clear()
            raise

    def take_outgoing(self) -> list[bytes]:
        """The binary frames to send now, in order. ACK, RESIZE and PING overtake what waits to be typed."""
        messages, self._messages = self._messages, []
        if isinstance(self._state, _Channel):
            messages += [self._state.sealer.seal(record) for record in self._due(self._state)]
        return messages

    # ---- input

    def write(self, data: bytes) -> None:
        """Keys typed: queued behind the input window and any outage. The caller bounds :attr:`pending_input`."""
        self._input.write(data)

    @property
    def pending_input(self) -> int:
        """Bytes typed that the host has not acknowledged as written, sent or not."""
        return self._input.pending

    @property
    def unsent_input(self) -> int:
        """Of these, the bytes not sent yet."""
        return self._input.unsent

    def drop_unsent(self) -> int:
        """Forget what was not sent; returns how many bytes."""
        return self._input.drop_unsent()

    def resize(self, columns: int, rows: int) -> None:
        """The terminal has a new size, each of 16 bits; only the latest is sent. Unpaired, :meth:`pair` takes it."""
        if self._state is not None:
            self._size = (columns, rows)

    # ---- output

    def processed(self, count: int) -> None:
        """The terminal took ``count`` bytes of :class:`Output` (an :class:`Exited` counts 1).

        Acknowledged after every quarter of what was not, and when all that came is processed.
        """
        self._printed.settle(count)
        if isinstance(self._state, _Channel):
            self._acknowledge_when_due(self._state)

    def flush(self) -> None:
        """Acknowledge what was processed now."""
        if isinstance(self._state, _Channel):
            self._state.ack_due = True

    def ping(self, now: float) -> None:
        """Measure the round trip, unless a ping is on its way or no channel is open."""
        if isinstance(self._state, _Channel) and self._state.pinged_at is None:
            self._state.pinged_at, self._state.ping_due = now, True

    @property
    def round_trip(self) -> float | None:
        """Seconds of the last answered ping."""
        return self._round_trip

    # ---- private

    def _events(self, message: bytes, now: float) -> Iterable[DeviceEvent]:
        match self._state:
            case _Greeting() as greeting:
                return (self._answered(greeting, message, now),)
            case _Channel() as channel:
                return self._record(channel, message, now)
            case _Over():
                return ()
            case _:
                raise ChannelError("a message outside of a pairing")

    def _answered(self, greeting: _Greeting, message: bytes, now: float) -> DeviceEvent:
        if now > greeting.deadline:
            raise ChannelError("the handshake took too long")
        answer = decode_message2(greeting.initiator.read(message))
        if isinstance(answer, Refused):
            self._state = _Over()
            return Refusal(answer.code)
        dropped = self._follow(answer, greeting.presented)
        send, receive = greeting.initiator.split()
        self._state = _Channel(
            Sealer(send),
            Opener(receive),
            restart_at=None if answer.resume == "exact" else answer.output_position,
            acknowledged=answer.output_position,
        )
        self._opened_once = True
        return Opened(answer.resume, answer.output_position, dropped)

    def _follow(self, answer: Accepted, presented: int) -> int:
        """Take over the host's counts; returns how many bytes typed were dropped."""
        match answer:
            case Accepted(resume="new", input_received=0):
                # Sent behind another device's input, what was typed for the old lineage would mix with it; but of a lineage
                # that the host never took nobody knows, and what never left cannot be there.
                dropped = self._input.restart(keep=not self._lineage_heard and not self._input.sent)
                self._lineage, self._lineage_heard = answer.lineage, False
                return dropped
            case Accepted(resume="repaint") if answer.lineage == self._lineage:
                self._lineage_heard = True
                self._input.resume(answer.input_received)
                return 0
            case Accepted(resume="exact") if (answer.lineage, answer.output_position) == (self._lineage, presented):
                self._lineage_heard = True
                self._input.resume(answer.input_received)
                self._printed.resume(presented)
                return 0
            case _:
                raise ChannelError("the host resumes what this device did not present")

    def _record(self, channel: _Channel, message: bytes, now: float) -> Iterator[DeviceEvent]:
        record = channel.opener.open(message)
        if channel.restart_at is not None:
            self._lineage_heard = True
            self._printed.restart(channel.restart_at)
            channel.restart_at = None
        match record:
            case None:
                pass
            case records.Data(data) if not channel.exited and not channel.repainting:
                self._printed.admit(len(data))
                if new := self._printed.arrive(len(data)):
                    yield Output(data[-new:])
                self._acknowledge_when_due(channel)
            case records.Repaint(data, last) if not channel.exited:
                channel.repainting = not last
                channel.repaint_room -= len(data)
                if channel.repaint_room < 0:
                    raise ChannelError("a repaint beyond its bound")
                yield Repaint(data, last)
            case records.Exit(status) if not channel.exited and not channel.repainting:
                channel.exited = True
                if self._printed.arrive(1):
                    yield Exited(status)
                self._acknowledge_when_due(channel)
            case records.Notice(text):
                yield Notice(text)
            case records.Ack(position):
                self._input.acknowledge(position)
                yield InputAcknowledged(position)
            case records.Pong() if channel.pinged_at is not None:
                self._round_trip, channel.pinged_at = now - channel.pinged_at, None
                yield Pong(self._round_trip)
            case _:
                raise ChannelError("a record that is not allowed here")

    def _acknowledge_when_due(self, channel: _Channel) -> None:
        # Repeated output moves this too: it is processed when it arrives.
        if self._printed.due(channel.acknowledged):
            channel.ack_due = True

    def _due(self, channel: _Channel) -> Iterator[records.Record]:
        if channel.ack_due:
            channel.ack_due = False
            channel.acknowledged = self._printed.acknowledgeable if channel.restart_at is None else channel.restart_at
            yield records.Ack(channel.acknowledged)
        if self._size is not None:
            size, self._size = self._size, None
            yield records.Resize(*size)
        if channel.ping_due:
            channel.ping_due = False
            yield records.Ping()
        while data := self._input.take(records.DATA_BYTES):
            yield records.Data(data)
