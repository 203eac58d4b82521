"""The check: both sides are here and ready, and one statement decides whether they may meet (E4, E4b, N1a)."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from bothy_server.terminal.domain.rendezvous.effects import Check, EndRow, Join, TellPaired, WriteDetached
from bothy_server.terminal.domain.rendezvous.events import Checked
from bothy_server.terminal.domain.rendezvous.state import Checking, Paired, Waiting
from bothy_server.terminal.domain.rendezvous.turn import Turn
from bothy_server.terminal.domain.session import SessionState
from bothy_wire.close_codes import CloseCode


def begin_where_due(turn: Turn) -> None:
    """Begin a check when both sides are ready, or when the row lost the pair that lives here."""
    device, host, row = turn.state.device, turn.state.host, turn.state.row
    if device is None or host is None or row is None:
        return
    match turn.state.phase:
        case Waiting() if device.ready and host.ready:
            number = turn.state.pairings + 1
            turn.state = replace(turn.state, phase=Checking(number), pairings=number)
            turn.do(Check(number, device.conn, host.conn, device.seq))
        case Paired(record="made") if row.state is SessionState.DETACHED:
            record_again(turn)
        case _:
            pass


def record_again(turn: Turn) -> None:
    """Run the statement again for the pair that lives here: its row does not carry it (E4b, N1a)."""
    phase, device, host = turn.state.phase, turn.state.device, turn.state.host
    assert isinstance(phase, Paired)
    assert device is not None
    assert host is not None
    turn.state = replace(turn.state, phase=replace(phase, record="asked"))
    turn.do(Check(phase.pairing, device.conn, host.conn, device.seq))


def take_answer(turn: Turn, answer: Checked) -> None:
    """An answer for sides that changed meanwhile is undone; any other decides."""
    if answer.row is not None:
        turn.learn(answer.row)
    match turn.state.phase:
        case Checking(answer.pairing, void=True):
            turn.state = replace(turn.state, phase=Waiting())
            if answer.outcome == "granted":
                _bound_start(turn)
                turn.do(WriteDetached(answer.paired_seq))
        case Checking(answer.pairing):
            turn.state = replace(turn.state, phase=Waiting())
            _decide_meeting(turn, answer)
        case Paired(answer.pairing, "asked"):
            turn.state = replace(turn.state, phase=Paired(answer.pairing, "due"))
            _decide_record(turn, answer)
        case _:
            raise ValueError(f"nobody asked for the check of pairing {answer.pairing}")


def _decide_meeting(turn: Turn, answer: Checked) -> None:
    row, device = turn.state.row, turn.state.device
    assert row is not None
    assert device is not None
    opening = row.state is SessionState.OPENING
    match answer.outcome:
        case "granted":
            _pair(turn, Paired(answer.pairing, "made"), answer.paired_seq, answer.token)
            _bound_start(turn)
            if opening and row.local_confirm:
                turn.do(TellPaired())
        case "stale" if not opening:
            _pair(turn, Paired(answer.pairing, "due"), row.paired_seq, answer.token)
        case "stale" | "unavailable":
            turn.drop(device, CloseCode.BUSY)
        case "superseded" | "denied" | "closed":
            _refuse(turn, answer)
        case _:
            assert_never(answer.outcome)


def _decide_record(turn: Turn, answer: Checked) -> None:
    match answer.outcome:
        case "granted":
            _mark(turn, Paired(answer.pairing, "made"), answer.paired_seq)
        case "stale" | "unavailable":
            pass  # stays due
        case "superseded" | "denied" | "closed":
            _refuse(turn, answer)
        case _:
            assert_never(answer.outcome)


def _refuse(turn: Turn, answer: Checked) -> None:
    row, device = turn.state.row, turn.state.device
    assert row is not None
    assert device is not None
    match answer.outcome:
        case "superseded":
            turn.replace_side(device)
        case "denied":
            turn.do(EndRow("revoked"))
            turn.state = replace(
                turn.state, row=replace(row, state=SessionState.CLOSED, close_reason="revoked", close_detail=None)
            )
        case _:
            turn.state = replace(turn.state, row=replace(row, state=SessionState.CLOSED))


def _pair(turn: Turn, phase: Paired, paired_seq: int, token: str) -> None:
    _mark(turn, phase, paired_seq)
    device, host = turn.state.device, turn.state.host
    assert device is not None
    assert host is not None
    turn.state = replace(turn.state, expectation=None, owed=None)
    turn.do(Join(phase.pairing, device.conn, host.conn, token))


def _mark(turn: Turn, phase: Paired, paired_seq: int) -> None:
    """Both sides carry the fence of their pairing."""
    for side in turn.state.accepted:
        turn.put(replace(side, paired_once=True, paired_seq=paired_seq, detach_written=False))
    turn.state = replace(turn.state, phase=phase)


def _bound_start(turn: Turn) -> None:
    """H1: this node wrote ``paired_at``, so it bounds the start, except where the host waits for a person."""
    row = turn.state.row
    assert row is not None
    opening = row.state is SessionState.OPENING and not row.local_confirm
    if opening and turn.state.start_by is None and not turn.state.draining:
        turn.state = replace(turn.state, start_by=turn.now + turn.limits.start_timeout)
