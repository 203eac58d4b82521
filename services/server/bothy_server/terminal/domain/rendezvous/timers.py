"""What a rendezvous does by itself, and when: the list of timers, and what each one does when it fires."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from bothy_server.terminal.domain.lone_side import SIDE_NAME, is_given_up, lone_side_deadline
from bothy_server.terminal.domain.rendezvous.effects import Count, EndRow, ReadRow, WriteDetached
from bothy_server.terminal.domain.rendezvous.state import Checking, Expectation, Limits, Paired, Side, State, sides
from bothy_server.terminal.domain.rendezvous.turn import Turn
from bothy_server.terminal.domain.session import Row, SessionState
from bothy_wire.close_codes import CloseCode


def deadline(state: State, limits: Limits) -> float | None:
    """The instant at which the rule wants a :class:`Tick`; ``None`` when nothing here waits for time."""
    if state.row is None:
        return None
    return min((at for at, _ in _timers(state, state.row, limits)), default=None)


def fire_due(turn: Turn) -> None:
    """Fire what is due, the earliest first; each one that fired is gone from the list."""
    row = turn.state.row
    if row is None:
        return
    while due := [timer for timer in _timers(turn.state, row, turn.limits) if timer[0] <= turn.now]:
        _, earliest = min(due, key=lambda timer: timer[0])
        _fire(turn, row, earliest)


@dataclass(frozen=True, slots=True)
class _Unmet:
    """An expectation without sides (E3)."""

    expectation: Expectation


@dataclass(frozen=True, slots=True)
class _Unstarted:
    """The program does not run (H1)."""


@dataclass(frozen=True, slots=True)
class _Unready:
    """``side.unpaired`` was not answered."""

    side: Side


@dataclass(frozen=True, slots=True)
class _Lone:
    """A side has waited long enough (L1 to L5)."""

    side: Side


@dataclass(frozen=True, slots=True)
class _Redial:
    """A lone device may ask the host to dial again (L6)."""

    device: Side


@dataclass(frozen=True, slots=True)
class _Abandoned:
    """The row says ``active`` and the host has been alone: the node that held the pair died (E4b)."""

    host: Side


_Timer: TypeAlias = _Unmet | _Unstarted | _Unready | _Lone | _Redial | _Abandoned


def _timers(state: State, row: Row, limits: Limits) -> Iterator[tuple[float, _Timer]]:
    if state.expectation is not None and not sides(state):
        yield lone_side_deadline(state.expectation.granted_at, limits.open_timeout), _Unmet(state.expectation)
    if state.start_by is not None:
        yield state.start_by, _Unstarted()
    for side in state.accepted:
        if side.asked_at is not None:
            yield side.asked_at + limits.stall_timeout, _Unready(side)

    pair_is_near = isinstance(state.phase, Paired) or (isinstance(state.phase, Checking) and not state.phase.void)
    if pair_is_near:
        return
    if state.device is not None:
        yield from _device_timers(state, row, state.device, limits)
    if state.host is not None:
        yield from _host_timers(state, row, state.host, limits)


def _device_timers(state: State, row: Row, device: Side, limits: Limits) -> Iterator[tuple[float, _Timer]]:
    alone = state.host is None
    # N1a: while the database is away no host is let in, so a device that lost its host is not made to leave.
    if not device.paired_once or (alone and not state.away):
        yield lone_side_deadline(device.lone_since, limits.open_timeout), _Lone(device)
    waits = (limits.redial_after, limits.open_timeout / 2)
    if alone and device.ready and row.paired and not state.draining and device.redials < len(waits):
        yield device.lone_since + waits[device.redials], _Redial(device)


def _host_timers(state: State, row: Row, host: Side, limits: Limits) -> Iterator[tuple[float, _Timer]]:
    waited = lone_side_deadline(host.lone_since, limits.open_timeout)
    if not host.paired_once and is_given_up("host", row):
        yield waited, _Lone(host)
    elif state.device is None and row.state is SessionState.ACTIVE and not host.detach_written:
        yield waited, _Abandoned(host)


def _fire(turn: Turn, row: Row, timer: _Timer) -> None:
    match timer:
        case _Unmet(expectation):
            if not (expectation.spared and row.local_confirm):
                _end_opening(turn, row)
            turn.state = replace(turn.state, expectation=None)
        case _Unstarted():
            if not turn.state.away:
                turn.do(EndRow("start_timeout"))
            turn.state = replace(turn.state, start_by=None)
        case _Unready(side):
            turn.drop(side, CloseCode.STALLED)
        case _Lone(side):
            _give_up(turn, row, side)
        case _Redial(device):
            # A redial on old knowledge could take the host out of a pair that runs elsewhere.
            turn.put(replace(device, redials=device.redials + 1))
            turn.do(ReadRow(device.conn))
        case _Abandoned(host):
            turn.put(replace(host, detach_written=True))
            turn.do(WriteDetached(host.paired_seq))
        case _:
            assert_never(timer)


def _give_up(turn: Turn, row: Row, side: Side) -> None:
    # Not a fault of the routing: a counterpart that is here but not ready (L1, L2), or a side that was paired (L4).
    alone = len(turn.began.accepted) == 1
    if alone and not side.paired_once:
        turn.do(Count(SIDE_NAME[side.kind]))
    _end_opening(turn, row)
    turn.drop(side, CloseCode.HOST_UNAVAILABLE)


def _end_opening(turn: Turn, row: Row) -> None:
    """L3; a node that drains ends nothing (N2), and with the database away the sweep does it (N1)."""
    end = EndRow("open_timeout")
    if row.never_met and end not in turn.effects and not (turn.state.draining or turn.state.away):
        turn.do(end)
        turn.state = replace(turn.state, expectation=None)
