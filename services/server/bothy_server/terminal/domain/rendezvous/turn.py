"""One step under way: the state so far, the effects so far, and the moves that every part of the rule is made of."""

from __future__ import annotations

from dataclasses import replace

from bothy_server.terminal.domain.rendezvous.effects import Close, Effect, Part, WriteDetached
from bothy_server.terminal.domain.rendezvous.state import (
    Checking,
    Kind,
    Limits,
    Paired,
    Phase,
    Side,
    State,
    Waiting,
)
from bothy_server.terminal.domain.session import Row, newest
from bothy_wire.close_codes import MEANINGS, CloseCode

REPLACED: dict[Kind, CloseCode] = {"device": CloseCode.REPLACED, "host": CloseCode.NORMAL}
"""What a side is told that made room for a newer one of its kind (E4a)."""


class Turn:
    """Lives for one call of ``step``."""

    def __init__(self, state: State, now: float, limits: Limits) -> None:
        """``now`` is the instant of the whole step."""
        self.began = self.state = state
        self.now = now
        self.limits = limits
        self.effects: list[Effect] = []

    def do(self, effect: Effect) -> None:
        """Ask for an effect, after those asked for before."""
        self.effects.append(effect)

    def close(self, conn: int, code: CloseCode, reason: str | None = None) -> None:
        """Close a connection; without a reason its text is the code's name."""
        self.do(Close(conn, code, MEANINGS[code].name if reason is None else reason))

    def learn(self, row: Row) -> Row:
        """Take in a row that was read or heard; answers with what is known now."""
        known = newest(self.state.row, row)
        self.state = replace(self.state, row=known)
        return known

    # ---- sides

    def side(self, conn: int) -> Side | None:
        """The accepted side on this connection."""
        return next((side for side in self.state.accepted if side.conn == conn), None)

    def here(self, kind: Kind) -> Side | None:
        """The accepted side of this kind."""
        return self.state.device if kind == "device" else self.state.host

    def put(self, side: Side) -> None:
        """Make this the accepted side of its kind."""
        self.state = replace(self.state, device=side) if side.kind == "device" else replace(self.state, host=side)

    def replace_side(self, side: Side) -> None:
        """Send an accepted side away because a newer one of its kind counts."""
        self.drop(side, REPLACED[side.kind], replaced=True)

    def drop(self, side: Side, code: CloseCode, *, replaced: bool = False) -> None:
        """Send an accepted side away."""
        self.leave(side, replaced=replaced)
        self.close(side.conn, code)

    def leave(self, side: Side, *, replaced: bool = False) -> None:
        """An accepted side is no longer here. Only a counterpart that was told of a pairing is told of its end (E4a, E5)."""
        if isinstance(self.state.phase, Paired):
            stays = self.here("host" if side.kind == "device" else "device")
            assert stays is not None
            self.do(Part(self.state.phase.pairing, stays.conn, side.conn))
            self.put(replace(stays, asked_at=self.now, lone_since=self.now, redials=0))
        self.state = replace(self.state, phase=without_a_side(self.state.phase))
        if side.kind == "host":
            self.state = replace(self.state, host=None)
        else:
            self.state = replace(self.state, device=None)
            # E4b: fenced by its own pairing, and a replaced side writes nothing.
            if side.paired_once and not replaced:
                self.do(WriteDetached(side.paired_seq))


def without_a_side(phase: Phase) -> Phase:
    """One check at a time (E4): a running one stays as void until its answer came and is undone."""
    match phase:
        case Checking(pairing) | Paired(pairing, "asked"):
            return Checking(pairing, void=True)
        case _:
            return Waiting()
