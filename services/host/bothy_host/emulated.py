"""The screen as a terminal emulator knows it, written as output that brings any terminal there."""

from __future__ import annotations

import logging
import re

from bothy_host.emulator import Emulator, EmulatorError
from bothy_host.repaint import RESET, strip_controls, strip_queries

_log = logging.getLogger(__name__)

_CELL_BYTES = 8
"""Memory of the emulator for one cell, which is one byte of output or more."""
_HOME = b"\x1b[H"
_LINE = b"\r\n"
_SAVE, _RESTORE = b"\x1b7", b"\x1b8"
_NO_STYLE = b"\x1b[0m"
_TO_MAIN, _TO_ALTERNATE = b"\x1b[?1049l", b"\x1b[?1049h"
_SCREENS = re.compile(rb"\x1b\[\?(?:47|1047|1049)h")
_PLAIN = b"\x1b[?6l\x1b[m\x1b]8;;\x1b\\\x1b(B\x1b)B\x1b*B\x1b+B\x0f"
"""No origin mode, no colours, no link, no other character set: what was painted last must not colour what follows."""
_ORIGIN = b"\x1b[?6h"
_KEYPAD, _KEYPAD_EVERYWHERE = b"\x1b[?66h", b"\x1b="
_ORIGIN_MODE = 6
_TOP, _LEFT = re.compile(rb"\x1b\[(\d+);\d+r"), re.compile(rb"\x1b\[(\d+);\d+s")
_NAMED_COLOUR = re.compile(rb"\x1b\[([34])8;5;(\d|1[0-5])m")
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]|\xc2[\x80-\x9f]")


class EmulatedScreen:
    """Feeds an emulator. A repaint has at most ``limit`` bytes: the oldest lines go first, colours and modes never."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._emulator = Emulator.new(history_bytes=limit * _CELL_BYTES, sequence_bytes=limit // 4)
        self._printed = False

    def feed(self, output: bytes) -> None:
        """The program printed."""
        self._printed = self._printed or bool(output)
        self._emulator.feed(output)

    def resize(self, columns: int, rows: int) -> None:
        """The main screen flows into the new size, as it does in most terminals."""
        self._emulator.resize(columns, rows)

    def repaint(self) -> bytes:
        """The whole terminal, and the begin of a sequence that the next output finishes."""
        if not self._printed:
            return b""
        try:
            return self._picture()
        except EmulatorError:
            # Whoever attaches gets the program all the same; an empty screen is what its next output makes good.
            _log.exception("no repaint")
            return RESET

    def _picture(self) -> bytes:
        unfinished = strip_controls(self._emulator.unfinished())
        begin = RESET + _names(self._emulator)
        room = self._limit - len(begin) - len(unfinished)
        main = self._emulator
        shown = _screen(self._emulator, room, modes=True)
        if self._emulator.alternate:
            shown = _TO_ALTERNATE + _PLAIN + shown
            try:
                main = self._emulator.copy()
            except EmulatorError:
                _log.warning("a repaint without the screen behind the one that is seen")
            else:
                main.feed(_TO_MAIN)
                shown = _screen(main, room - len(shown), modes=False) + shown
        picture = begin + _NAMED_COLOUR.sub(_by_name, _history(main, room - len(shown)) + shown)
        # Only a limit that is too small even for colours and modes is left to break here.
        return strip_queries(picture if len(picture) + len(unfinished) <= self._limit else RESET) + unfinished


def _names(emulator: Emulator) -> bytes:
    """Title and colours."""
    title = _CONTROL.sub(b" ", emulator.title)
    named = b"\x1b]2;%s\x1b\\" % title if title else b""
    colours = [f"\x1b]{name};rgb:{r:02x}/{g:02x}/{b:02x}\x1b\\" for name, (r, g, b) in emulator.colours.items()]
    return named + "".join(colours).encode()


def _history(emulator: Emulator, room: int) -> bytes:
    """As many lines that scrolled out as there is room for, moved out of the screen again."""
    out = _LINE * emulator.size[1]
    room -= len(out)
    lines = emulator.history
    while lines > 0 and room > 0:
        painted = emulator.paint_history(lines)
        if len(painted) <= room:
            return painted + out
        # At least half of them go each time: where the last lines are the long ones, a rule of three would go on for ever.
        lines = min(lines * room // len(painted), lines // 2)
    return b""


def _screen(emulator: Emulator, room: int, *, modes: bool) -> bytes:
    """The screen that is seen; with ``modes`` those of the terminal. Which of its two screens it is says the caller."""
    begin = _saved_cursor(emulator) + emulator.paint_blanks()
    painted, end = _SCREENS.sub(b"", emulator.paint_screen(modes=modes)), b""
    painted = painted.replace(_usual_tabs(emulator), b"", 1).replace(_KEYPAD, _KEYPAD_EVERYWHERE, 1)
    if len(begin) + len(painted) > room:
        begin, painted = b"", _without_upper_rows(painted, room)
    if emulator.mode(_ORIGIN_MODE):
        painted, end = painted.replace(_ORIGIN, b"", 1), _origin(emulator, painted)
    if (shape := emulator.cursor_shape) is not None:
        end += b"\x1b[%d q" % shape
    return begin + painted + end


def _usual_tabs(emulator: Emulator) -> bytes:
    """What sets the tabs of a reset; to set them would leave a terminal that grows without any in its new part."""
    return b"\x1b[3g" + b"".join(b"\x1b[%dG\x1bH" % column for column in range(9, emulator.size[0] + 1, 8))


def _saved_cursor(emulator: Emulator) -> bytes:
    """The cursor that a program saved and may go back to, saved again."""
    try:
        restored = emulator.copy()
    except EmulatorError:  # rare states cannot be copied; to have the screen matters more
        return b""
    restored.feed(_RESTORE)
    column, row = restored.cursor
    painted = restored.paint_screen(modes=False)
    style = painted[painted.rindex(_NO_STYLE) :]
    origin = _ORIGIN if restored.mode(_ORIGIN_MODE) else b""
    return origin + _at(column, row) + style + _SAVE + _PLAIN


def _origin(emulator: Emulator, painted: bytes) -> bytes:
    """Origin mode moves the cursor, and from then on positions count from a corner of the scroll region."""
    top, left = (1 if (edge := each.search(painted)) is None else int(edge[1]) for each in (_TOP, _LEFT))
    column, row = emulator.cursor
    return _ORIGIN + _at(max(column - left + 1, 1), max(row - top + 1, 1))


def _without_upper_rows(painted: bytes, room: int) -> bytes:
    """With as many empty rows at the top as it takes to fit, without any row when that does not help."""
    begin, home, rest = painted.partition(_HOME)
    rows = rest.split(_LINE)
    length = len(painted)
    for number, row in enumerate(rows):
        if length <= room:
            return begin + home + _LINE.join(rows)
        rows[number] = b""
        length -= len(row)
    return begin


def _by_name(colour: re.Match[bytes]) -> bytes:
    """The first sixteen colours as programs ask for them: some terminals make these brighter when they are bold."""
    plane, number = int(colour[1]) * 10, int(colour[2])
    return b"\x1b[%dm" % (plane + number if number < 8 else plane + 60 + number - 8)


def _at(column: int, row: int) -> bytes:
    return b"\x1b[%d;%dH" % (row, column)
