"""The program's log: one JSON object a line, or text for a person; without secrets, and without floods.

All code logs through the standard library with a constant message and its fields as ``extra``::

    _log.warning("terminal relay side unpaired", extra={"bothy.terminal.side": "client", "bothy.close.code": 4102})
"""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from bothy_server.kernel.rates import Rate
from bothy_server.platform.settings import Log

REDACTED = "[redacted]"
_SECRET_NAME = re.compile(
    r"token|password|passphrase|secret|authorization|cookie|challenge|signature|private|(invite|pairing|user)_?code",
    re.IGNORECASE,
)
_SECRET_TEXT = re.compile(
    r"eyJ[\w-]+\.[\w-]+\.[\w-]*"  # a signed token
    r"|(?<=://)[^/@\s]+(?=@)"  # user and password of an address
    r"|\b[0-9A-HJKMNP-TV-Z]{5}(?:-[0-9A-HJKMNP-TV-Z]{4,5}){4}\b",  # a code that a person carries
    re.ASCII,
)
_MOST_KINDS = 256


def configure_logging(settings: Log, stream: TextIO = sys.stderr) -> None:
    """Send everything that this process logs to ``stream``, in the form, level and rate of the settings."""
    handler = logging.StreamHandler(stream)
    handler.addFilter(RepeatedWarnings(settings.repeat_rate))
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                structlog.stdlib.ExtraAdder(),
                structlog.stdlib.add_log_level,
                structlog.stdlib.add_logger_name,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
            ],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                redact,
                _renderer(settings),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level.upper())
    logging.getLogger("alembic").setLevel(logging.WARNING)  # it tells of every look at the schema


def redact(_logger: WrappedLogger, _method: str, record: EventDict) -> EventDict:
    """Replace what is secret by its name, and what looks secret in any text, tracebacks included."""
    return {name: REDACTED if _SECRET_NAME.search(name) else _clean(value) for name, value in record.items()}


class RepeatedWarnings(logging.Filter):
    """Lets through so many warnings of one kind; the next one carries ``left_out``, the number of those that were not.

    A kind is a message before its arguments. Errors always pass.
    """

    def __init__(self, rate: Rate, monotonic: Callable[[], float] = time.monotonic) -> None:
        """``monotonic`` gives steady seconds."""
        super().__init__()
        self._rate = rate
        self._monotonic = monotonic
        self._windows: dict[tuple[str, str], _Window] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """See ``logging.Filter``."""
        if record.levelno != logging.WARNING:
            return True
        window = self._window((record.name, str(record.msg)))
        if window.left == 0:
            window.left_out += 1
            return False
        window.left -= 1
        if window.left_out:
            record.left_out = window.left_out
            window.left_out = 0
        return True

    def _window(self, kind: tuple[str, str]) -> _Window:
        now = self._monotonic()
        window = self._windows.pop(kind, None)
        if window is None:
            window = _Window(now + self._rate.period_s, self._rate.count)
            if len(self._windows) == _MOST_KINDS:
                del self._windows[next(iter(self._windows))]  # the one that was not heard of for longest
        elif now >= window.until:
            window.until, window.left = now + self._rate.period_s, self._rate.count
        self._windows[kind] = window
        return window


@dataclass(slots=True)
class _Window:
    """What one kind may still do until steady instant ``until``."""

    until: float
    left: int
    left_out: int = 0


def _renderer(settings: Log) -> Processor:
    if settings.format == "json":
        return structlog.processors.JSONRenderer(sort_keys=True, ensure_ascii=False)
    return structlog.dev.ConsoleRenderer(colors=False)


def _clean(value: Any) -> Any:
    match value:
        case str():
            return _SECRET_TEXT.sub(REDACTED, value)
        case bytes():
            return f"[{len(value)} bytes]"
        case dict():
            return redact(None, "", value)
        case list() | tuple():
            return [_clean(each) for each in value]
        case _:
            return value
