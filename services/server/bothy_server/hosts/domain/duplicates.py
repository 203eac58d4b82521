"""What one control connection does about other connections of its host (``docs/spec/cluster.md``, D).

``step`` and ``deadline`` only; no socket, no database. Instants are steady seconds, ``now`` is never earlier than before.

A host has one connection at a time and makes a new one only when it gave up the one before. So an older connection on which
somebody still answers, while a newer one has reported, means that two machines hold one key. Nothing but the answer to a
ping with a random payload says so: a socket that looks open may have nobody at its other end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from bothy_wire.ids import ConnId


@dataclass(frozen=True, slots=True)
class Limits:
    """``probe_timeout`` (``terminal.host_duplicate_probe_timeout``) and ``verdict_retry`` in seconds.

    ``probation``: other nodes may hold older connections (``cluster.mode`` = ``multi``).
    """

    probe_timeout: float
    verdict_retry: float
    probation: bool


# What stands against a connection. ``rivals`` are newer connections that have reported; None stands for its own join value,
# which was passed already, so that nobody has to stay for the verdict.

Rivals = frozenset[ConnId] | None


@dataclass(frozen=True, slots=True)
class Clear:
    """Nothing."""


@dataclass(frozen=True, slots=True)
class Probed:
    """Without an answer by ``until`` nobody is there."""

    rivals: Rivals
    until: float


@dataclass(frozen=True, slots=True)
class Answered:
    """The verdict is being written, or due again at ``until`` when the database did not take it."""

    rivals: Rivals
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Silent:
    """Nobody answered. Final: it is closed."""


@dataclass(frozen=True, slots=True)
class State:
    """A connection; ``conn_id`` is None when its join value is behind, for then it is not accepted.

    ``probation_until``: older connections on other nodes have until then to be found. ``older``: those on this node that are
    probed because of this one.
    """

    conn_id: ConnId | None
    against: Clear | Probed | Answered | Silent = Clear()
    reported: bool = False
    probation_until: float | None = None
    older: frozenset[ConnId] = frozenset()

    @property
    def serving(self) -> bool:
        """Whether it may be told to open sessions."""
        waits = self.probation_until is not None or self.older
        return self.reported and not waits and isinstance(self.against, Clear)


# Events.


@dataclass(frozen=True, slots=True)
class Reported:
    """The host reported on this connection. ``older``: its older connections on this node."""

    older: frozenset[ConnId]


@dataclass(frozen=True, slots=True)
class Announced:
    """Another connection of the host has reported, wherever it is."""

    conn_id: ConnId


@dataclass(frozen=True, slots=True)
class Gone:
    """Another connection of the host went."""

    conn_id: ConnId


@dataclass(frozen=True, slots=True)
class Ponged:
    """The probe was answered with its own payload."""


@dataclass(frozen=True, slots=True)
class NotWritten:
    """The database did not take the verdict."""


@dataclass(frozen=True, slots=True)
class Elapsed:
    """The deadline may have passed."""


Event = Reported | Announced | Gone | Ponged | NotWritten | Elapsed


# Effects.


@dataclass(frozen=True, slots=True)
class Announce:
    """Tell every other connection of the host that this one is there, on all nodes, at once."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Ping with a fresh random payload."""


@dataclass(frozen=True, slots=True)
class Serve:
    """It may be told to open sessions from now on: read which ones wait."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Two machines hold the key: disable the host."""


@dataclass(frozen=True, slots=True)
class Close:
    """Nobody is there: 4009."""


Effect = Announce | Probe | Serve | Verdict | Close
Step = tuple[State, tuple[Effect, ...]]


def is_older(one: ConnId, other: ConnId) -> bool:
    """Whether ``one`` identified before ``other``: ids of one host are made under its row's lock, and grow (D1)."""
    return one < other


def probation_end(announced_at: float, limits: Limits) -> float:
    """A probe elsewhere, and as long again for what tells of it and of its verdict (D4)."""
    return announced_at + 2 * limits.probe_timeout


def behind(now: float, limits: Limits) -> Step:
    """A connection whose join value was passed already: a copy, unless it is only a late frame that nobody waits for (D5)."""
    return State(None, Probed(None, now + limits.probe_timeout)), (Probe(),)


def deadline(state: State) -> float | None:
    """When :class:`Elapsed` is due next."""
    against = state.against.until if isinstance(state.against, Probed | Answered) else None
    return min((at for at in (against, state.probation_until) if at is not None), default=None)


def step(state: State, event: Event, now: float, limits: Limits) -> Step:
    """What follows from ``event``. An event that has no meaning in a state changes nothing."""
    after, effects = _step(state, event, now, limits)
    return after, (*effects, Serve()) if after.serving and not state.serving else effects


def _step(state: State, event: Event, now: float, limits: Limits) -> Step:
    match event, state.against:
        case Reported(older), _ if not state.reported:
            until = probation_end(now, limits) if limits.probation else None
            return replace(state, reported=True, probation_until=until, older=older), (Announce(),)
        case Reported(), _:
            return state, ()
        case Announced(conn_id), _:
            return _announced(state, conn_id, now, limits)
        case Gone(conn_id), _:
            return _gone(state, conn_id), ()
        case Ponged(), Probed(rivals):
            return replace(state, against=Answered(rivals)), (Verdict(),)
        case NotWritten(), Answered(rivals):
            return replace(state, against=Answered(rivals, now + limits.verdict_retry)), ()
        case ((Ponged() | NotWritten()), _):
            return state, ()
        case Elapsed(), _:
            return _elapsed(state, now)
        case _:
            assert_never(event)


def _announced(state: State, conn_id: ConnId, now: float, limits: Limits) -> Step:
    own = state.conn_id
    if own is None or own == conn_id:
        return state, ()
    if is_older(conn_id, own):
        return state, (Announce(),) if state.reported else ()
    match state.against:
        case Clear():
            return replace(state, against=Probed(frozenset({conn_id}), now + limits.probe_timeout)), (Probe(),)
        case (Probed(rivals) | Answered(rivals)) as against if rivals is not None:
            return replace(state, against=replace(against, rivals=rivals | {conn_id})), ()
        case _:
            return state, ()


def _gone(state: State, conn_id: ConnId) -> State:
    state = replace(state, older=state.older - {conn_id})
    match state.against:
        case (Probed(rivals) | Answered(rivals)) as against if rivals is not None:
            left = rivals - {conn_id}
            return replace(state, against=replace(against, rivals=left) if left else Clear())
        case _:
            return state


def _elapsed(state: State, now: float) -> Step:
    if state.probation_until is not None and now >= state.probation_until:
        state = replace(state, probation_until=None)
    match state.against:
        case Probed(_, until) if now >= until:
            return replace(state, against=Silent()), (Close(),)
        case Answered(rivals, until) if until is not None and now >= until:
            return replace(state, against=Answered(rivals)), (Verdict(),)
        case _:
            return state, ()
