"""The process of the terminal emulator, as the service sees it: told without waiting, asked for pictures.

The emulator is native code that reads what programs print. A fault in it must end no session, so it has a process of its own, one
for all sessions of a host, and nothing here relies on that process: a picture may come late, never, or be nonsense.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import socket
import sys
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import cast

from bothy_host.emulator_protocol import HEADER, LENGTH, SIZE, Kind
from bothy_wire.limits import REPAINT_TOTAL_BYTES

_log = logging.getLogger(__name__)

_MODULE = "bothy_host.emulator_process"
_SILENT_S = 20.0
"""Whoever owes a picture for so long is not late but broken. No key: a start takes a third of a second, a picture less than a tenth."""
_TRIAL = b"\r\n" * 30 + b"\x1b]2;trial\x07\x1b]4;1;#000000\x07\x1b[?1049h\x1b[44m\x1b[2J"
"""Each function of the library takes long the first time; better at the start than between somebody's keys."""


def installed() -> bool:
    """Whether there is an emulator (extra ``screen``)."""
    return find_spec("pyghostty") is not None


@contextlib.asynccontextmanager
async def started() -> AsyncIterator[EmulatorLink]:
    """A process that is ready, and its end with the context. Raises ``OSError`` when it does not start."""
    ours, theirs = socket.socketpair()
    _, link = await asyncio.get_running_loop().create_connection(EmulatorLink, sock=ours)
    try:
        with theirs:
            process = await _spawn(theirs)
        try:
            await _try_out(link)
            _log.info("the terminal emulator runs as process %d", process.pid)
            yield link
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    finally:
        link.end("it was stopped")


@dataclass(frozen=True, slots=True)
class _Question:
    """A picture that the process owes, also when nobody waits for it any more."""

    asked_at: float
    picture: asyncio.Future[bytes | None]


class EmulatorLink(asyncio.Protocol):
    """One process, until it ends, falls silent or answers nonsense."""

    def __init__(self) -> None:
        self.gone: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Why it is of no more use."""
        self._owed: deque[_Question] = deque()
        self._answers = bytearray()
        self._numbers = itertools.count(1)

    def new(self, limit: int) -> RemoteScreen:
        """A screen of its own; ``limit`` is the most bytes of its pictures."""
        number = next(self._numbers)
        self.tell(Kind.NEW, number, LENGTH.pack(limit))
        return RemoteScreen(self, number)

    @property
    def waiting(self) -> int:
        """Bytes that it was told and has not taken."""
        return self._transport.get_write_buffer_size()

    def tell(self, kind: Kind, number: int, body: bytes = b"") -> None:
        """Say something; nobody hears it when the process is gone."""
        if not self.gone.done():
            self._transport.write(HEADER.pack(kind, number, len(body)) + body)

    async def picture(self, number: int, patience: float) -> bytes | None:
        """What a screen shows now; none when it does not come within ``patience`` seconds."""
        loop = asyncio.get_running_loop()
        if self._owed and loop.time() - self._owed[0].asked_at > _SILENT_S:
            self.end("it does not answer any more")
        if self.gone.done():
            return None
        self.tell(Kind.REPAINT, number)
        question = _Question(loop.time(), loop.create_future())
        self._owed.append(question)
        try:
            async with asyncio.timeout(patience):
                return await question.picture
        except TimeoutError:
            return None

    def end(self, reason: str) -> None:
        """Expect nothing more of it; the first reason counts."""
        if not self.gone.done():
            self.gone.set_result(reason)
        self._transport.abort()
        while self._owed:
            self._answer(None)

    # ---- the socket speaks (asyncio.Protocol) --------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """At the very start."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Pictures, cut anywhere."""
        self._answers += data
        while len(self._answers) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._answers)
            if not self._owed or length > REPAINT_TOTAL_BYTES:
                self.end("it said what it was not asked")
                return
            if len(self._answers) < LENGTH.size + length:
                return
            self._answer(bytes(self._answers[LENGTH.size : LENGTH.size + length]))
            del self._answers[: LENGTH.size + length]

    def connection_lost(self, _: Exception | None) -> None:
        """The process ended, or this end does not want it any more."""
        self.end("it ended")

    def _answer(self, picture: bytes | None) -> None:
        question = self._owed.popleft()
        if not question.picture.done():  # else nobody waited so long
            question.picture.set_result(picture)


class RemoteScreen:
    """One screen in the process."""

    def __init__(self, link: EmulatorLink, number: int) -> None:
        self._link = link
        self._number = number

    @property
    def waiting(self) -> int:
        """Bytes that the process has not taken, of all its screens."""
        return self._link.waiting

    def feed(self, output: bytes) -> None:
        """The program printed."""
        self._link.tell(Kind.FEED, self._number, output)

    def resize(self, columns: int, rows: int) -> None:
        """The terminal has this size now."""
        self._link.tell(Kind.RESIZE, self._number, SIZE.pack(columns, rows))

    async def picture(self, patience: float) -> bytes | None:
        """See :meth:`EmulatorLink.picture`."""
        return await self._link.picture(self._number, patience)

    def close(self) -> None:
        """Nobody needs it any more."""
        self._link.tell(Kind.CLOSE, self._number)


async def _spawn(connection: socket.socket) -> asyncio.subprocess.Process:
    words = (sys.executable, "-I", "-m", _MODULE, str(connection.fileno()))
    nothing = asyncio.subprocess.DEVNULL
    return await asyncio.create_subprocess_exec(
        *words, stdin=nothing, stdout=nothing, env={}, cwd="/", pass_fds=(connection.fileno(),)
    )


async def _try_out(link: EmulatorLink) -> None:
    trial = link.new(4096)
    trial.feed(_TRIAL)
    if await trial.picture(_SILENT_S) is None:
        raise OSError("it does not answer")
    trial.close()
