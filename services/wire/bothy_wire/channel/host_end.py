"""The host's end of the end-to-end channel, without I/O and without a clock.

Time is an argument (``now``: steady seconds). The shell calls :meth:`HostEnd.take_outgoing` when its socket took what it gave
before: answers that wait (ACK, PONG, the NOTICE of a bad size) are one each, however often they were earned, so a peer that
does not read costs no memory. A pairing has one state object, which goes with it; what lives longer (positions, lineage) is
in the end itself.

Message 1 can be replayed by whoever carries it. So until the device's first record, always an ACK, nothing of the end
changes: only that record proves the keys and makes a lineage current.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from bothy_wire.channel import records
from bothy_wire.channel.flow import Arrivals, Departures, Limits
from bothy_wire.channel.handshake import (
    Accepted,
    Message1,
    RefusalCode,
    Refused,
    Resume,
    decode_message1,
    encode_payload,
    prologue,
)
from bothy_wire.channel.host_events import Acknowledged, HostEvent, Input, Offered, Opened, Pinged, Resized
from bothy_wire.channel.noise import Responder
from bothy_wire.channel.records import Opener, Sealer
from bothy_wire.channel.window import OutputWindow
from bothy_wire.errors import ChannelError, LocalError
from bothy_wire.limits import LINEAGE_BYTES, REPAINT_TOTAL_BYTES, SIZE_MAX, SIZE_MIN

__all__ = ["Acknowledged", "HostEnd", "HostEvent", "Input", "Offered", "Opened", "Pinged", "Resized"]

_SIZE_NOTICE = records.Notice(f"a terminal size is {SIZE_MIN} to {SIZE_MAX} columns and rows; another one is ignored")


@dataclass(slots=True)
class _Waiting:
    """Message 1 has not come."""

    deadline: float


@dataclass(slots=True)
class _Asked:
    """Message 1 came and is not answered."""

    responder: Responder
    message1: Message1
    deadline: float


@dataclass(slots=True)
class _Answered:
    """Message 2 said yes; the device's first record is awaited."""

    sealer: Sealer
    opener: Opener
    message1: Message1
    accepted: Accepted
    answered_at: float
    deadline: float


@dataclass(slots=True)
class _Channel:
    """The channel is open. The flags say what goes out next."""

    sealer: Sealer
    opener: Opener
    window: OutputWindow
    ack_due: bool = True  # at once, so that the device knows what of its input is written
    pong_due: bool = False
    size_notice_due: bool = False
    exited: bool = False


@dataclass(slots=True)
class _Over:
    """The channel failed or was refused: binary is ignored until the pairing ends."""

    deadline: float | None = None
    """A refused device leaves before this."""


class HostEnd:
    """One session as the host sees it; lives over many pairings."""

    def __init__(self, *, channel_key: X25519PrivateKey, session_id: UUID, host_id: UUID, limits: Limits) -> None:
        self._channel_key = channel_key
        self._prologue = prologue(session_id, host_id)
        self._limits = limits
        self._state: _Waiting | _Asked | _Answered | _Channel | _Over | None = None
        self._messages: list[bytes] = []
        self._lineage: bytes | None = None
        self._typed = Arrivals(limits.input_window)
        self._printed = Departures()
        self._repainted_at: int | None = None  # a repaint from here is not proven to have reached the terminal
        self._exit_position: int | None = None

    # ---- the pairing

    def paired(self, now: float) -> None:
        """``side.paired`` came: wait for message 1."""
        self.unpaired()
        self._state = _Waiting(now + self._limits.handshake_timeout)

    def unpaired(self) -> None:
        """``side.unpaired`` came or the connection is lost: the channel is gone, the counts are kept."""
        self._state = None
        self._messages.clear()

    def deadline(self) -> float | None:
        """When the handshake must be done; the shell closes with 4107 after it."""
        return None if self._state is None or isinstance(self._state, _Channel) else self._state.deadline

    @property
    def open(self) -> bool:
        """Whether a channel is open."""
        return isinstance(self._state, _Channel)

    def resume_of(self, message1: Message1, held_from: int) -> Resume:
        """The best answer to ``message1``; ``held_from`` is the lowest output position that the caller can send again."""
        if message1.lineage != self._lineage or self._lineage is None or message1.input_sent < self._typed.received:
            return "new"
        held = max(held_from, self._printed.acknowledged) <= message1.output_processed <= self._printed.reached
        return "exact" if held and self._repainted_at is None else "repaint"

    def accept(self, resume: Resume, lineage: bytes, output_position: int, now: float) -> None:
        """Answer :class:`Offered` with yes.

        ``lineage`` is 16 fresh random bytes for ``new``, else :attr:`lineage`. ``output_position`` is where output goes
        on: what the device processed for ``exact``, else the position that the repaint shows.
        """
        asked = self._asked()
        fresh = resume == "new"
        if len(lineage) != LINEAGE_BYTES or (lineage == self._lineage) is fresh:
            raise LocalError("a lineage is new, or the current one")
        if resume == "exact" and output_position != asked.message1.output_processed:
            raise LocalError("an exact resume goes on where the device is")
        accepted = Accepted(
            resume=resume,
            lineage=lineage,
            output_position=output_position,
            input_received=0 if fresh else self._typed.received,
        )
        self._messages.append(asked.responder.write(encode_payload(accepted)))
        send, receive = asked.responder.split()
        self._state = _Answered(Sealer(send), Opener(receive), asked.message1, accepted, now, asked.deadline)

    def refuse(self, code: RefusalCode) -> None:
        """Answer :class:`Offered` with no; the device leaves."""
        asked = self._asked()
        self._messages.append(asked.responder.write(encode_payload(Refused(code=code))))
        self._state = _Over(asked.deadline)

    # ---- messages

    def receive(self, message: bytes, now: float) -> list[HostEvent]:
        """One binary frame. Raises :class:`ChannelError` once; after it nothing more is read in this pairing."""
        try:
            return list(self._events(message, now))
        except ChannelError:
            self._state = _Over()
            self._messages.clear()
            raise

    def take_outgoing(self) -> list[bytes]:
        """The binary frames to send now, in order."""
        self._answer()
        messages, self._messages = self._messages, []
        return messages

    # ---- input

    def written(self, count: int) -> None:
        """That many bytes of :class:`Input` went into the pseudo-terminal."""
        self._typed.settle(count)
        if count and isinstance(self._state, _Channel):
            self._state.ack_due = True

    @property
    def lineage(self) -> bytes | None:
        """The current input lineage; none before the first channel."""
        return self._lineage

    # ---- output

    def output(self, data: bytes, now: float) -> None:
        """Send output, at most :attr:`output_credit` bytes, behind the answers that wait."""
        if len(data) > self.output_credit:
            raise LocalError("output beyond the window")
        if not isinstance(channel := self._state, _Channel):
            return  # and there is no data
        self._answer()
        most = min(channel.window.piece, records.DATA_BYTES)
        for start in range(0, len(data), most):
            piece = data[start : start + most]
            self._send(records.Data(piece))
            self._printed.send(len(piece))
            channel.window.sent(self._printed.sent, self._printed.in_flight, now)

    @property
    def output_credit(self) -> int:
        """Bytes of output that may be sent now; 0 when no channel is open and after EXIT."""
        match self._state:
            case _Channel(exited=False, window=window):
                return self._printed.credit(window.size)
            case _:
                return 0

    def repaint(self, data: bytes) -> None:
        """Send a whole repaint, once on a channel; it needs no window and counts in no position.

        At most :data:`~bothy_wire.limits.REPAINT_TOTAL_BYTES`.
        """
        if len(data) > REPAINT_TOTAL_BYTES:
            raise LocalError("a repaint beyond its bound")
        starts = range(0, max(len(data), 1), records.REPAINT_BYTES)
        for start in starts:
            piece = data[start : start + records.REPAINT_BYTES]
            self._send(records.Repaint(piece, last=start == starts[-1])).window.repainted(len(piece))

    def exit(self, status: int) -> None:
        """Send the exit status (0 to 255) behind all output; nothing but notices may follow."""
        self._send(records.Exit(status)).exited = True
        self._printed.send(1)
        self._exit_position = self._printed.sent

    def notice(self, text: str) -> None:
        """Send a line for the person; cut at :data:`~bothy_wire.channel.records.NOTICE_BYTES`."""
        self._send(records.Notice(text.encode()[: records.NOTICE_BYTES].decode(errors="ignore")))

    @property
    def output_position(self) -> int:
        """Output position sent on this channel; without one, where the last ended."""
        return self._printed.sent

    @property
    def acknowledged(self) -> int:
        """Output position that the device's terminal took."""
        return self._printed.acknowledged

    @property
    def exit_acknowledged(self) -> bool:
        """Whether the device acknowledged up to and including EXIT."""
        return self._exit_position is not None and self._printed.acknowledged >= self._exit_position

    # ---- private

    def _asked(self) -> _Asked:
        if not isinstance(self._state, _Asked):
            raise LocalError("no handshake waits for an answer")
        return self._state

    def _send(self, record: records.Record) -> _Channel:
        if not isinstance(self._state, _Channel):
            raise LocalError("no channel is open")
        if self._state.exited and isinstance(record, records.Exit | records.Repaint):
            raise LocalError("the exit status was sent")
        self._messages.append(self._state.sealer.seal(record))
        return self._state

    def _answer(self) -> None:
        """Send what waits in the flags of the channel."""
        if not isinstance(channel := self._state, _Channel):
            return
        if channel.ack_due:
            channel.ack_due = False
            self._send(records.Ack(self._typed.acknowledgeable))
        if channel.pong_due:
            channel.pong_due = False
            self._send(records.Pong())
        if channel.size_notice_due:
            channel.size_notice_due = False
            self._send(_SIZE_NOTICE)

    def _events(self, message: bytes, now: float) -> Iterable[HostEvent]:
        deadline = self.deadline()
        match self._state:
            case _Over():
                return ()
            case _Channel() as channel:
                return self._record(channel, message, now)
            case _ if deadline is not None and now > deadline:
                raise ChannelError("the handshake took too long")
            case _Waiting() as waiting:
                return (self._offered(waiting, message),)
            case _Answered() as answered:
                return self._confirmed(answered, message, now)
            case _:
                raise ChannelError("a message that nobody asked for")

    def _offered(self, waiting: _Waiting, message: bytes) -> Offered:
        responder = Responder(self._channel_key, self._prologue)
        message1 = decode_message1(responder.read(message))
        self._state = _Asked(responder, message1, waiting.deadline)
        return Offered(message1, responder.remote_static)

    def _confirmed(self, answered: _Answered, message: bytes, now: float) -> Iterator[HostEvent]:
        """The device proved its keys: what message 2 said becomes true."""
        accepted, message1 = answered.accepted, answered.message1
        if answered.opener.open(message) != records.Ack(accepted.output_position):
            raise ChannelError("the first record is not the expected ACK")
        round_trip = now - answered.answered_at
        self._state = _Channel(answered.sealer, answered.opener, OutputWindow(self._limits, round_trip))
        self._lineage = accepted.lineage
        self._printed.restart(accepted.output_position)
        if accepted.resume == "new":
            self._typed.restart(0)
        else:
            self._typed.resume(accepted.input_received)
        if accepted.resume != "exact":
            self._repainted_at, self._exit_position = accepted.output_position, None
        yield Opened(message1.columns, message1.rows, message1.term)

    def _record(self, channel: _Channel, message: bytes, now: float) -> Iterator[HostEvent]:
        match channel.opener.open(message):
            case None:
                pass
            case records.Data(data):
                self._typed.admit(len(data))
                self._typed.arrive(len(data))
                yield Input(data)
            case records.Ack(position):
                self._printed.acknowledge(position)
                channel.window.acknowledged(position, now)
                if self._repainted_at is not None and position > self._repainted_at:
                    self._repainted_at = None  # output stands behind the repaint, so that is shown too
                yield Acknowledged(position)
            case records.Resize(columns, rows) if SIZE_MIN <= columns <= SIZE_MAX and SIZE_MIN <= rows <= SIZE_MAX:
                yield Resized(columns, rows)
            case records.Resize():
                channel.size_notice_due = True
            case records.Ping():
                channel.pong_due = True
                yield Pinged()
            case _:
                raise ChannelError("a record that is not allowed here")
