"""libghostty-vt, the terminal emulator inside Ghostty, as far as a repaint needs it.

The only module that imports ``pyghostty`` (extra ``screen``). It calls the library below the classes of that package, since
these neither copy a terminal nor write one as output.

No callback is set, so the emulator answers nothing. Pictures are off: they would cost memory, and a repaint does without.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any

from pyghostty import GhosttyError, ffi, lib
from pyghostty._ffi import check, union_fn
from pyghostty.core import init_sized

EmulatorError = GhosttyError
"""The library refused; the terminal itself is as it was."""

_SHAPES = {
    lib.GHOSTTY_RENDER_STATE_CURSOR_VISUAL_STYLE_BLOCK: 2,
    lib.GHOSTTY_RENDER_STATE_CURSOR_VISUAL_STYLE_UNDERLINE: 4,
    lib.GHOSTTY_RENDER_STATE_CURSOR_VISUAL_STYLE_BAR: 6,
}
"""What DECSCUSR calls a steady cursor of each shape; the blinking one is one less."""
_COLOURS = {"10": "FOREGROUND", "11": "BACKGROUND", "12": "CURSOR"}
_PALETTE = 256
_ABORT = b"\x18"

_grid_ref = union_fn("ghostty_terminal_grid_ref", "GhosttyResult(*)(GhosttyTerminal, GhosttyPointS, GhosttyGridRef*)")


class Emulator:
    """One terminal."""

    def __init__(self, terminal: Any) -> None:
        self._terminal = terminal

    @classmethod
    def new(cls, *, history_bytes: int, sequence_bytes: int) -> Emulator:
        """``history_bytes``: memory for lines that scrolled out. ``sequence_bytes``: of a sequence whose end is awaited."""
        made = cls(_made("GhosttyTerminal", lib.ghostty_terminal_new, 80, 24, free=lib.ghostty_terminal_free))
        made._set("SCROLLBACK_MAX_BYTES", "size_t", history_bytes)
        made._set("SCROLLBACK_MAX_LINES", "size_t", history_bytes)
        made._set("CONTINUATION_MAX_BYTES", "size_t", sequence_bytes)
        made._set("KITTY_IMAGE_STORAGE_LIMIT", "uint64_t", 0)
        # No program can ask for the hollow cursor, so it tells that none asked for a shape.
        made._set("DEFAULT_CURSOR_STYLE", "GhosttyTerminalCursorStyle", lib.GHOSTTY_TERMINAL_CURSOR_STYLE_BLOCK_HOLLOW)
        return made

    def copy(self) -> Emulator:
        """Another terminal in the same state; behind :meth:`unfinished` only."""
        state = _filled(lib.ghostty_snapshot_encode_buf, self._terminal)
        source = ffi.from_buffer(state), len(state)
        new, free = lib.ghostty_snapshot_decoder_new_buf, lib.ghostty_snapshot_decoder_free
        decoder = _made("GhosttySnapshotDecoder", new, *source, free=free)
        terminal = ffi.new("GhosttyTerminal *")
        check(lib.ghostty_snapshot_decoder_decode(decoder, terminal), "copy")
        return Emulator(ffi.gc(terminal[0], lib.ghostty_terminal_free))

    def feed(self, output: bytes) -> None:
        """Output of the program, cut anywhere."""
        lib.ghostty_terminal_vt_write(self._terminal, output, len(output))

    def unfinished(self) -> bytes:
        """The begin of a sequence or character whose end has not come. One that is too long is given up."""
        length = ffi.new("size_t *")
        outcome = lib.ghostty_terminal_continuation_buf(self._terminal, ffi.NULL, 0, length)
        if outcome == lib.GHOSTTY_INVALID_VALUE:
            self.feed(_ABORT)
            return b""
        return _filled(lib.ghostty_terminal_continuation_buf, self._terminal)

    def resize(self, columns: int, rows: int) -> None:
        """A new size; the lines of the main screen flow into it. Without the memory for it the old size stays."""
        lib.ghostty_terminal_resize(self._terminal, columns, rows, 1, 1)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        return self._get("COLS", "uint16_t"), self._get("ROWS", "uint16_t")

    @property
    def cursor(self) -> tuple[int, int]:
        """Column and row, from 1."""
        return self._get("CURSOR_X", "uint16_t") + 1, self._get("CURSOR_Y", "uint16_t") + 1

    @property
    def cursor_shape(self) -> int | None:
        """As DECSCUSR numbers it; none when no program asked for one."""
        state = _made("GhosttyRenderState", lib.ghostty_render_state_new, free=lib.ghostty_render_state_free)
        check(lib.ghostty_render_state_update(state, self._terminal), "render state")
        shape, blinking = ffi.new("GhosttyRenderStateCursorVisualStyle *"), ffi.new("bool *")
        check(lib.ghostty_render_state_get(state, lib.GHOSTTY_RENDER_STATE_DATA_CURSOR_VISUAL_STYLE, shape), "shape")
        check(lib.ghostty_render_state_get(state, lib.GHOSTTY_RENDER_STATE_DATA_CURSOR_BLINKING, blinking), "blinking")
        steady = _SHAPES.get(shape[0])
        return None if steady is None else steady - blinking[0]

    @property
    def alternate(self) -> bool:
        """Whether the alternate screen is shown."""
        return bool(self._get("ACTIVE_SCREEN", "GhosttyTerminalScreen") == lib.GHOSTTY_TERMINAL_SCREEN_ALTERNATE)

    @property
    def title(self) -> bytes:
        """What the program called its window."""
        title = self._get("TITLE", "GhosttyString")
        return bytes(ffi.buffer(title.ptr, title.len)) if title.len else b""

    @property
    def colours(self) -> dict[str, tuple[int, int, int]]:
        """Red, green and blue of the colours that the program changed, by what OSC calls each."""
        now, default = ffi.new("GhosttyColorRgb[]", _PALETTE), ffi.new("GhosttyColorRgb[]", _PALETTE)
        check(lib.ghostty_terminal_get(self._terminal, lib.GHOSTTY_TERMINAL_DATA_COLOR_PALETTE, now), "palette")
        check(
            lib.ghostty_terminal_get(self._terminal, lib.GHOSTTY_TERMINAL_DATA_COLOR_PALETTE_DEFAULT, default),
            "palette",
        )
        changed = {f"4;{index}": now[index] for index in range(_PALETTE) if _rgb(now[index]) != _rgb(default[index])}
        for number, name in _COLOURS.items():
            colour = ffi.new("GhosttyColorRgb *")
            key = getattr(lib, f"GHOSTTY_TERMINAL_DATA_COLOR_{name}")
            if lib.ghostty_terminal_get(self._terminal, key, colour) != lib.GHOSTTY_NO_VALUE:
                changed[number] = colour
        return {number: _rgb(colour) for number, colour in changed.items()}

    def mode(self, number: int) -> bool:
        """Whether a private mode is set."""
        mode = ffi.new("GhosttyTerminalModeConfig *", {"mode": number})
        check(lib.ghostty_terminal_get(self._terminal, lib.GHOSTTY_TERMINAL_DATA_MODE, mode), "mode")
        return bool(mode.value)

    @property
    def history(self) -> int:
        """How many lines scrolled out and are still known."""
        return int(self._get("SCROLLBACK_ROWS", "size_t"))

    def paint_history(self, lines: int) -> bytes:
        """The last ``lines``, at least one, of those that scrolled out, as output; wrapped lines are whole again."""
        options = _options()
        options.unwrap = True
        return self._painted(options, self.history - lines, self.history - 1, lib.GHOSTTY_POINT_TAG_HISTORY)

    def paint_screen(self, *, modes: bool) -> bytes:
        """Output that paints this screen on an empty one: tabs, home, the lines, then the cursor with its colours.

        With ``modes`` also what the whole terminal has: modes in front, the scroll region before the cursor.
        Each row is a line: a wrapped line put together again moves what stands below, when a program wrote in between.
        """
        options = _options()
        options.extra.modes = options.extra.scrolling_region = options.extra.keyboard = modes
        options.extra.tabstops = True
        cursor = options.extra.screen
        cursor.cursor = cursor.style = cursor.hyperlink = cursor.protection = cursor.charsets = True
        cursor.kitty_keyboard = True
        return self._painted(options, 0, self.size[1] - 1, lib.GHOSTTY_POINT_TAG_ACTIVE)

    def paint_blanks(self) -> bytes:
        """Output that paints the rows that have colours and no text, which :meth:`paint_screen` leaves out."""
        known: dict[int, bytes | None] = {0: b""}
        return b"".join(self._blanks(row, known) for row in range(self.size[1]))

    def _blanks(self, row: int, known: dict[int, bytes | None]) -> bytes:
        """One row. ``known`` are cells that were seen: a screen has thousands of them and few different ones."""
        place, cell = self._cell(0, row, lib.GHOSTTY_POINT_TAG_ACTIVE), ffi.new("GhosttyCell *")
        colours = []
        for place.x in range(self.size[0]):
            check(lib.ghostty_grid_ref_cell(place, cell), "cell")
            value = cell[0]
            if value not in known:
                known[value] = _background(value)
            if (colour := known[value]) is None:
                return b""
            colours.append(colour)
        if not any(colours):
            return b""
        painted, column = b"", 1
        for colour, cells in groupby(colours):
            length = len(list(cells))
            if colour:
                painted += b"\x1b[%d;%dH\x1b[%sm\x1b[%dX\x1b[m" % (row + 1, column, colour, length)
            column += length
        return painted

    def _painted(self, options: Any, first: int, last: int, rows: int) -> bytes:
        selection = init_sized("GhosttySelection")
        selection.start = self._cell(0, first, rows)[0]
        selection.end = self._cell(self.size[0] - 1, last, rows)[0]
        options.selection = selection
        new, free = lib.ghostty_formatter_terminal_new, lib.ghostty_formatter_free
        formatter = _made("GhosttyFormatter", new, self._terminal, options[0], free=free)
        return _filled(lib.ghostty_formatter_format_buf, formatter)

    def _cell(self, column: int, row: int, tag: int) -> Any:
        point, cell = (
            ffi.new("GhosttyPointS *", {"tag": tag, "value": {"x": column, "y": row}}),
            init_sized("GhosttyGridRef"),
        )
        check(_grid_ref(self._terminal, point[0], cell), "cell")
        return cell

    def _set(self, option: str, kind: str, value: int) -> None:
        key = getattr(lib, f"GHOSTTY_TERMINAL_OPT_{option}")
        check(lib.ghostty_terminal_set(self._terminal, key, ffi.new(f"{kind} *", value)), option)

    def _get(self, value: str, kind: str) -> Any:
        out = ffi.new(f"{kind} *")
        check(lib.ghostty_terminal_get(self._terminal, getattr(lib, f"GHOSTTY_TERMINAL_DATA_{value}"), out), value)
        return out[0]


def _made(kind: str, new: Callable[..., int], *arguments: Any, free: Callable[[Any], None]) -> Any:
    out = ffi.new(f"{kind} *")
    check(new(ffi.NULL, out, *arguments), kind)
    return ffi.gc(out[0], free)


def _options() -> Any:
    options = init_sized("GhosttyFormatterTerminalOptions")
    options.emit = lib.GHOSTTY_FORMATTER_FORMAT_VT
    return options


def _filled(write: Callable[..., int], *arguments: Any) -> bytes:
    """What ``write`` writes into a buffer of the length that it asks for."""
    length = ffi.new("size_t *")
    write(*arguments, ffi.NULL, 0, length)
    buffer = ffi.new("uint8_t[]", max(length[0], 1))
    check(write(*arguments, buffer, len(buffer), length), "format")
    return bytes(ffi.buffer(buffer, length[0]))


def _background(cell: int) -> bytes | None:
    """The SGR parameters of the background of a cell without text; none for one with text."""
    if _of_cell(cell, "HAS_TEXT", "bool"):
        return None
    match _of_cell(cell, "CONTENT_TAG", "GhosttyCellContentTag"):
        case lib.GHOSTTY_CELL_CONTENT_BG_COLOR_PALETTE:
            return b"48;5;%d" % _of_cell(cell, "COLOR_PALETTE", "uint8_t")
        case lib.GHOSTTY_CELL_CONTENT_BG_COLOR_RGB:
            return b"48;2;%d;%d;%d" % _rgb(_of_cell(cell, "COLOR_RGB", "GhosttyColorRgb"))
        case _:
            return b""


def _of_cell(cell: int, value: str, kind: str) -> Any:
    out = ffi.new(f"{kind} *")
    check(lib.ghostty_cell_get(cell, getattr(lib, f"GHOSTTY_CELL_DATA_{value}"), out), value)
    return out[0]


def _rgb(colour: Any) -> tuple[int, int, int]:
    return colour.r, colour.g, colour.b
