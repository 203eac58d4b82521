"""Ports of the server that remember what they were told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeVar

from bothy_server.kernel.unit import Signal
from bothy_server.terminal.app.ports import SideEvents
from bothy_wire.frames import Frame
from bothy_wire.ids import ConnId, HostId, SessionId

F = TypeVar("F", bound=Frame)


class RecordedSignals:
    """Implements ``Signals``: what a unit told at its commit, and what was sent outside any."""

    def __init__(self) -> None:
        self.committed_ones: list[Signal] = []
        self.sent: list[Signal] = []

    def payloads(self, signals: Sequence[Signal]) -> list[str]:
        return []

    def committed(self, signals: Sequence[Signal]) -> None:
        self.committed_ones += signals

    def send(self, signal: Signal) -> None:
        self.sent.append(signal)


class RecordedControlLink:
    """Implements ``ControlLink``."""

    def __init__(self, host_id: HostId, conn_id: ConnId, *, eligible: bool = True, contested: bool = False) -> None:
        self.host_id = host_id
        self.conn_id = conn_id
        self.eligible = eligible
        self.contested = contested
        self.told: list[tuple[str, ConnId]] = []
        self.sent: list[Frame] = []
        self.deferred: list[SessionId] = []
        self.closed: list[int] = []
        self.judged = 0

    @property
    def serving(self) -> bool:
        return self.eligible and not self.contested

    def send(self, frame: Frame) -> None:
        self.sent.append(frame)

    def defer(self, session_id: SessionId) -> None:
        self.deferred.append(session_id)

    def close(self, code: int, reason: str = "") -> None:
        self.closed.append(int(code))

    def judge_again(self) -> None:
        self.judged += 1

    def announced(self, conn_id: ConnId) -> None:
        self.told.append(("announced", conn_id))

    def gone(self, conn_id: ConnId) -> None:
        self.told.append(("gone", conn_id))

    def took(self, kind: type[F]) -> list[F]:
        """The frames of this kind, which are forgotten."""
        found = [frame for frame in self.sent if isinstance(frame, kind)]
        self.sent = [frame for frame in self.sent if not isinstance(frame, kind)]
        return found


class RecordedSide:
    """Implements ``SideLink``. A close ends the connection as the real one does: later, and once."""

    def __init__(self, owner: SideEvents) -> None:
        self.told: list[str] = []
        self.discards = False
        self.closed: tuple[int, str] | None = None
        self.forwarded_bytes = 0
        self._owner = owner
        self._gone = False

    def send_text(self, text: str) -> None:
        self.told.append(text)

    def close(self, code: int, reason: str = "") -> None:
        if self.closed is None and not self._gone:
            self.closed = int(code), reason
            asyncio.get_running_loop().call_soon(self.vanish, int(code))

    def abort(self) -> None:
        self.close(1006)

    def discard(self, on: bool) -> None:
        self.discards = on

    def vanish(self, code: int = 1006) -> None:
        """The connection ends."""
        if not self._gone:
            self._gone = True
            self._owner.gone(self, code)
