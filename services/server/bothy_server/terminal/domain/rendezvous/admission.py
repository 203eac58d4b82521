"""How a side comes to be accepted here (E1, E2, E2a, E4a)."""

from __future__ import annotations

from dataclasses import replace

from bothy_server.terminal.domain.rendezvous.effects import Accept, ReadRow, Redial
from bothy_server.terminal.domain.rendezvous.state import Expectation, Kind, Side, Waiting
from bothy_server.terminal.domain.rendezvous.turn import REPLACED, Turn
from bothy_server.terminal.domain.session import Row, SessionState
from bothy_wire.close_codes import CloseCode


def expect(turn: Turn, row: Row) -> None:
    """A signal said that sides may come."""
    turn.learn(row)
    if row.state is not SessionState.OPENING or turn.state.draining:
        return
    # A doubled signal moves no deadline; a newer attach is a grant of its own.
    known = turn.state.expectation
    if known is None or known.attach_seq < row.attach_seq:
        turn.state = replace(turn.state, expectation=Expectation(turn.now, row.attach_seq))


def register(turn: Turn, conn: int, kind: Kind, seq: int) -> None:
    """E2a: registered first, then read, so that whatever comes meanwhile acts on it."""
    arrival = Side(conn, kind, seq, lone_since=turn.now)
    turn.state = replace(turn.state, reading=(*turn.state.reading, arrival))
    turn.do(ReadRow(conn))


def judge(turn: Turn, conn: int, row: Row | None, *, failed: bool) -> None:
    """The read decides whether a registered side stays."""
    arrival = next((side for side in turn.state.reading if side.conn == conn), None)
    if arrival is None:
        _redial(turn, conn, row)
        return
    forget(turn, conn)
    if failed:
        turn.close(conn, CloseCode.BUSY)
        return
    if row is None:
        turn.close(conn, CloseCode.IDENTIFY_REFUSED)
        return
    known = turn.learn(row)
    if known.state is SessionState.CLOSED:
        turn.close(conn, CloseCode.SESSION_ENDED, known.end)
    elif _is_outdated(turn, arrival, known):
        turn.close(conn, REPLACED[arrival.kind])
    else:
        older = turn.here(arrival.kind)
        if older is not None:
            turn.replace_side(older)
        turn.put(replace(arrival, paired_seq=row.paired_seq))
        turn.do(Accept(conn))


def forget(turn: Turn, conn: int) -> None:
    """Take a side out of those whose row is being read."""
    turn.state = replace(turn.state, reading=tuple(side for side in turn.state.reading if side.conn != conn))


def _is_outdated(turn: Turn, arrival: Side, row: Row) -> bool:
    """A newer attach wins (E1), then the later registration, however late this one's read came (E4a)."""
    if arrival.kind == "device" and arrival.seq < row.attach_seq:
        return True
    here = turn.here(arrival.kind)
    return here is not None and here.conn > arrival.conn and here.seq >= arrival.seq


def _redial(turn: Turn, conn: int, row: Row | None) -> None:
    """The fresh read of L6: only a device that the row still names may ask the host to dial again."""
    device = turn.state.device
    if row is None or device is None or device.conn != conn:
        return
    known = turn.learn(row)
    alone = isinstance(turn.state.phase, Waiting) and turn.state.host is None and device.ready
    wanted = known.paired and known.state is not SessionState.CLOSED and known.attach_seq == device.seq
    if alone and wanted and not turn.state.draining:
        turn.do(Redial())
