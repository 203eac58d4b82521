"""The outgoing stream of one link. It is written by two: the counterpart's reader, and the link with its own frames.

Own control frames wait for a border between the frames that pass, own texts for a border between messages.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import termios
from array import array

from bothy_server.terminal.adapters.sockets.frame_reader import FrameReader
from bothy_server.terminal.adapters.sockets.websocket_frames import Opcode, frame


class FrameWriter:
    """Writes frames to ``transport``. ``paused`` mirrors its high-water mark."""

    __slots__ = ("_controls", "_source", "_texts", "_transport", "paused")

    def __init__(self, transport: asyncio.Transport) -> None:
        self.paused = False
        self._transport = transport
        self._source: FrameReader | None = None
        self._controls: dict[Opcode, bytes] = {}
        self._texts: list[bytes] = []

    def follow(self, source: FrameReader) -> None:
        """From now on :meth:`forward` gets what ``source`` passes."""
        self._source = source

    def leave(self) -> None:
        """Stop following: what the source left unfinished is filled up, then own frames may go."""
        if self._source is not None:
            self._write(self._source.cut())
            self._source = None
        self.flush()

    def forward(self, out: list[bytes]) -> None:
        """Write what the source just passed, with own frames at its borders."""
        if self._controls or self._texts:
            self._place_own_frames(out)
        self._transport.write(b"".join(out))

    def send_text(self, text: str) -> None:
        """Send one text message."""
        self._texts.append(frame(Opcode.TEXT, text.encode()))
        self.flush()

    def send_control(self, opcode: Opcode, payload: bytes) -> None:
        """Send a ping or a pong. One of a kind waits, the newest, so that a flood of pings costs one pong."""
        self._controls[opcode] = frame(opcode, payload)
        if not self.paused:
            self.flush()

    def finish(self, payload: bytes) -> None:
        """Complete the stream, write what waits, and the close frame. Nothing may be sent after it."""
        self.leave()
        self._write(frame(Opcode.CLOSE, payload))

    def flush(self) -> None:
        """Write the own frames that need not wait any more."""
        source = self._source
        own: list[bytes] = []
        if source is None or not source.mid_frame:
            own.extend(self._controls.values())
            self._controls.clear()
        if source is None or not source.mid_message:
            own.extend(self._texts)
            self._texts.clear()
        self._write(b"".join(own))

    def is_waiting(self, opcode: Opcode) -> bool:
        """Whether a control frame of this kind has not been written yet."""
        return opcode in self._controls

    def queued_bytes(self) -> int:
        """What the peer has not taken yet, the kernel's part included: that moves although its buffer stays full."""
        untaken = array("i", [0])
        with contextlib.suppress(OSError, ValueError):  # the connection is gone, which is not ours to tell
            fcntl.ioctl(self._transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, untaken)
        return self._transport.get_write_buffer_size() + untaken[0]

    def _place_own_frames(self, out: list[bytes]) -> None:
        """Insert what waits into ``out``. The border of texts is never the later one, so controls go in first."""
        assert self._source is not None
        frame_border, message_border = self._source.frame_border(out), self._source.message_border(out)
        if frame_border is not None:
            out[frame_border:frame_border] = self._controls.values()
            self._controls.clear()
        if message_border is not None:
            out[message_border:message_border] = self._texts
            self._texts.clear()

    def _write(self, data: bytes) -> None:
        if data and not self._transport.is_closing():
            self._transport.write(data)
