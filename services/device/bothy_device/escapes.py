"""The escape sequences of a person at a terminal, as ssh has them: the escape character at the start of a line.

Pure. Escapes are found as keys are read, not when their turn comes, so that they work while a paste waits. Text inside a
bracketed paste is never an escape: a pasted line that happens to begin with ``~.`` must not end the session.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto


class Command(Enum):
    """What a person asks of ``bothy`` itself."""

    LEAVE = auto()
    DROP = auto()
    HELP = auto()
    SUSPEND = auto()


@dataclass(frozen=True, slots=True)
class Keys:
    """Bytes for the remote side."""

    data: bytes


COMMANDS = {b".": Command.LEAVE, b"D": Command.DROP, b"?": Command.HELP, b"\x1a": Command.SUSPEND}
"""The byte after the escape character. The escape character twice is one of it for the remote side."""

_PASTE_ENDS = re.compile(rb"\x1b\[201~")
_MARKER_TAIL = 5
"""A marker has six bytes: that many of them may lie in the piece before."""


class EscapeParser:
    r"""Splits what was typed into keys and commands; the same for every way of cutting the input into pieces.

    >>> list(EscapeParser(b"~").feed(b"ls\r~."))
    [Keys(data=b'ls\r'), <Command.LEAVE: 1>]
    """

    def __init__(self, escape: bytes) -> None:
        """``escape`` is one byte, or empty for no escapes at all."""
        self._escape = escape
        self._border = re.compile(rb"[\r\n](?=%b)|\x1b\[200~" % (re.escape(escape) or b"(?!)"))
        self._line_start = True
        self._pending = False
        self._pasting = False
        self._tail = b""

    @property
    def pasting(self) -> bool:
        """Whether a bracketed paste is under way, behind what was handed out last."""
        return self._pasting

    def feed(self, data: bytes) -> Iterator[Keys | Command]:
        """Everything in ``data``, in order. An escape character whose next byte is missing is held back."""
        text = self._tail + data
        at = len(self._tail)
        self._tail = text[-_MARKER_TAIL:]
        keys = bytearray()
        while at < len(text):
            byte = text[at : at + 1]
            if self._pending:
                self._pending = False
                if byte in COMMANDS:
                    if keys:
                        yield Keys(bytes(keys))
                        keys.clear()
                    yield COMMANDS[byte]
                    at += 1
                    continue
                keys += self._escape
                self._line_start = False
                at += byte == self._escape
            elif self._line_start and byte == self._escape:
                self._pending = True
                at += 1
            else:
                end = self._plain_until(text, at)
                keys += text[at:end]
                at = end
        if keys:
            yield Keys(bytes(keys))

    def _plain_until(self, text: bytes, at: int) -> int:
        """Where the next line that could hold an escape, or the next paste border, is; past ``at``."""
        border = _PASTE_ENDS if self._pasting else self._border
        for match in border.finditer(text, max(0, at - _MARKER_TAIL)):
            if match.end() > at:
                self._line_start = len(match[0]) == 1
                self._pasting = not self._line_start and not self._pasting
                return match.end()
        self._line_start = not self._pasting and text[-1:] in (b"\r", b"\n")
        return len(text)
