"""The rule: what an event changes, and what follows from it. Pure; see the package for how it is driven.

``admission`` lets sides in, ``check`` joins them, ``timers`` acts by itself, ``turn`` holds the moves that all three share.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from bothy_server.terminal.domain.lone_side import SIDE_NAME
from bothy_server.terminal.domain.rendezvous.admission import expect, forget, judge, register
from bothy_server.terminal.domain.rendezvous.check import begin_where_due, record_again, take_answer
from bothy_server.terminal.domain.rendezvous.effects import Count, Effect, WriteDetached
from bothy_server.terminal.domain.rendezvous.events import (
    Arrived,
    Checked,
    DatabaseBack,
    DatabaseLost,
    Drain,
    Event,
    Expected,
    Gone,
    PairedElsewhere,
    Readied,
    RowChanged,
    RowRead,
    Stalled,
    Tick,
    WriteFailed,
)
from bothy_server.terminal.domain.rendezvous.state import Limits, Paired, State, sides
from bothy_server.terminal.domain.rendezvous.timers import fire_due
from bothy_server.terminal.domain.rendezvous.turn import Turn, without_a_side
from bothy_server.terminal.domain.session import Row, SessionState
from bothy_wire.close_codes import CloseCode


def step(state: State, event: Event, now: float, limits: Limits) -> tuple[State, list[Effect]]:
    """Take one event at instant ``now``: the new state, and what the shell does, in this order."""
    turn = Turn(state, now, limits)
    _take(turn, event)
    _settle(turn)
    return turn.state, turn.effects


def _take(turn: Turn, event: Event) -> None:
    match event:
        case Expected(row):
            expect(turn, row)
        case PairedElsewhere():
            if turn.state.expectation is not None:
                turn.state = replace(turn.state, expectation=replace(turn.state.expectation, spared=True))
        case Arrived(conn, kind, seq):
            register(turn, conn, kind, seq)
        case RowRead(conn, row, failed):
            judge(turn, conn, row, failed=failed)
        case Readied(conn):
            _ready(turn, conn)
        case Gone(conn):
            # E7: by identity; whoever took its place meanwhile stays.
            forget(turn, conn)
            if (side := turn.side(conn)) is not None:
                turn.leave(side)
        case Stalled(conn):
            if (side := turn.side(conn)) is not None:
                turn.drop(side, CloseCode.STALLED)
        case Checked():
            take_answer(turn, event)
        case RowChanged(row):
            turn.learn(row)
        case WriteFailed(paired_seq):
            if not isinstance(turn.state.phase, Paired):
                turn.state = replace(turn.state, owed=max(paired_seq, turn.state.owed or 0))
        case DatabaseLost():
            turn.state = replace(turn.state, away=True)
        case DatabaseBack():
            _catch_up(turn)
        case Drain():
            turn.state = replace(turn.state, draining=True, expectation=None, start_by=None)
        case Tick():
            fire_due(turn)
        case _:
            assert_never(event)


def _ready(turn: Turn, conn: int) -> None:
    side = turn.side(conn)
    if side is None:
        return
    if side.ready:
        turn.drop(side, CloseCode.PROTOCOL_VIOLATION)
    else:
        turn.put(replace(side, asked_at=None))


def _catch_up(turn: Turn) -> None:
    """The database is back: first the pair that lives here, else the write that is owed (N1a, E4b)."""
    device = turn.state.device
    if turn.state.away and device is not None and device.paired_once and turn.state.host is None:
        turn.put(replace(device, lone_since=turn.now, redials=0))
    if isinstance(turn.state.phase, Paired) and turn.state.phase.record == "due":
        record_again(turn)
    if turn.state.owed is not None:
        turn.do(WriteDetached(turn.state.owed))
    turn.state = replace(turn.state, away=False, owed=None)


def _settle(turn: Turn) -> None:
    """What follows from any change."""
    row = turn.state.row
    if row is None:
        return
    if row.state is SessionState.CLOSED:
        _end(turn, row)
        return
    if row.state is not SessionState.OPENING:
        turn.state = replace(turn.state, expectation=None, start_by=None)
    if turn.state.owed is not None and row.outlived(turn.state.owed):
        turn.state = replace(turn.state, owed=None)
    if turn.state.device is not None and turn.state.device.seq < row.attach_seq:
        turn.replace_side(turn.state.device)
    begin_where_due(turn)


def _end(turn: Turn, row: Row) -> None:
    """The row is closed: every registered side goes, also one whose row is being read (E2a).

    Which node ends a session that never met must not show: a lone side gets what its own timer would have given it (E3).
    """
    missed = row.close_detail == "open_timeout"
    for side in sides(turn.state):
        if missed and turn.state.accepted == (side,) and not side.paired_once:
            turn.do(Count(SIDE_NAME[side.kind]))
            turn.close(side.conn, CloseCode.HOST_UNAVAILABLE)
        else:
            turn.close(side.conn, CloseCode.SESSION_ENDED, row.end)
    turn.state = State(row=row, phase=without_a_side(turn.state.phase))
