"""When the listener dials, doubts, gives up and dials again (``docs/spec/cluster.md``, R2, R3, R6).

``step`` and ``deadline`` only; no socket, no database. Instants are steady seconds, ``now`` is never earlier than before.

Every connection has to prove itself: it LISTENs, the node notifies itself on the ordinary way, and only the echo shows that
this connection hears. Then comes the reconcile, and then it counts as hearing. A way to PostgreSQL that takes LISTEN and
never delivers (a transaction pooler, a replica, another database) fails the proof instead of looking healthy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds: ``database.listen_reconnect_backoff_cap``, ``listen_watchdog_interval``, ``listen_echo_timeout``."""

    backoff_cap: float
    watchdog_interval: float
    echo_timeout: float


# The watchdog: one self-notify at a time.


@dataclass(frozen=True, slots=True)
class Resting:
    """The last self-notify is settled; the next is due at ``until``."""

    until: float


@dataclass(frozen=True, slots=True)
class Notifying:
    """A self-notify is being committed. Its echo may come before we hear of the commit."""

    echoed: bool = False


@dataclass(frozen=True, slots=True)
class Awaiting:
    """It was committed; without its echo by ``until`` the connection is deaf."""

    until: float


Watch = Resting | Notifying | Awaiting


# States. ``start_until``: the process is starting and waits for the first echo until then. ``None``: it runs; that the
# listener was lost has been told, and not yet that it is back.


@dataclass(frozen=True, slots=True)
class Connecting:
    """A connection is being made, LISTEN included; it may take until ``until``."""

    start_until: float | None
    until: float


@dataclass(frozen=True, slots=True)
class Pausing:
    """The last attempt failed; the next is due at ``until``."""

    start_until: float | None
    until: float


@dataclass(frozen=True, slots=True)
class Asking:
    """At the start, listening failed: a self-notify shows whether the database is away, or only this way to it."""

    start_until: float
    error_type: str


@dataclass(frozen=True, slots=True)
class Proving:
    """LISTEN is on; its first echo is outstanding. ``until`` holds from the commit of the self-notify on."""

    start_until: float | None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Reconciling:
    """It hears; what was missed is being read."""

    start_until: float | None
    watch: Watch


@dataclass(frozen=True, slots=True)
class Hearing:
    """All is well."""

    watch: Watch


@dataclass(frozen=True, slots=True)
class Refused:
    """The database answers and this way to it was not heard on. Final: the start fails."""

    error_type: str


State = Connecting | Pausing | Asking | Proving | Reconciling | Hearing | Refused


# Events.


@dataclass(frozen=True, slots=True)
class Listened:
    """The connection is there and LISTEN has succeeded."""


@dataclass(frozen=True, slots=True)
class Broke:
    """The attempt failed or the connection ended."""

    error_type: str


@dataclass(frozen=True, slots=True)
class Committed:
    """The self-notify was committed."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The self-notify could not be committed; no echo is to be expected."""

    error_type: str


@dataclass(frozen=True, slots=True)
class Echoed:
    """The self-notify came back."""


@dataclass(frozen=True, slots=True)
class Reconciled:
    """All handlers have read what was missed."""


@dataclass(frozen=True, slots=True)
class Elapsed:
    """The deadline may have passed."""


Event = Listened | Broke | Committed | Failed | Echoed | Reconciled | Elapsed


# Effects.


@dataclass(frozen=True, slots=True)
class Connect:
    """Dial and LISTEN."""


@dataclass(frozen=True, slots=True)
class Disconnect:
    """End the connection or the attempt, and forget the self-notify and the reconcile of it."""


@dataclass(frozen=True, slots=True)
class NotifySelf:
    """Commit a fresh self-notify, not on the connection that listens."""


@dataclass(frozen=True, slots=True)
class Reconcile:
    """Tell the handlers of a gap."""


@dataclass(frozen=True, slots=True)
class TellLost:
    """Say once that the listener is lost."""

    error_type: str


@dataclass(frozen=True, slots=True)
class TellHearing:
    """Say that the listener hears; ``restored`` when it had been lost."""

    restored: bool


@dataclass(frozen=True, slots=True)
class Refuse:
    """Fail the start."""


Effect = Connect | Disconnect | NotifySelf | Reconcile | TellLost | TellHearing | Refuse
Step = tuple[State, tuple[Effect, ...]]


def start(now: float, limits: Limits) -> Step:
    """The first state, and what to do for it."""
    return Connecting(now + limits.watchdog_interval, now + limits.echo_timeout), (Connect(),)


def deadline(state: State) -> float | None:
    """When :class:`Elapsed` is due next."""
    match state:
        case Connecting(until=until) | Pausing(until=until) | Proving(until=until):
            return until
        case Reconciling(watch=watch) | Hearing(watch=watch):
            return None if isinstance(watch, Notifying) else watch.until
        case Asking() | Refused():
            return None
        case _:
            assert_never(state)


def step(state: State, event: Event, now: float, limits: Limits) -> Step:
    """What follows from ``event``. An event that has no meaning in a state changes nothing."""
    due = deadline(state)
    if isinstance(event, Elapsed) and (due is None or now < due):
        return state, ()
    match state:
        case Connecting():
            return _connecting(state, event, now, limits)
        case Pausing():
            return _pausing(state, event, now, limits)
        case Asking():
            return _asking(state, event, now, limits)
        case Proving():
            return _proving(state, event, now, limits)
        case Reconciling() | Hearing():
            return _hearing(state, event, now, limits)
        case Refused():
            return state, ()
        case _:
            assert_never(state)


def _connecting(state: Connecting, event: Event, now: float, limits: Limits) -> Step:
    match event:
        case Listened():
            return Proving(state.start_until), (NotifySelf(),)
        case Broke(error_type):
            return _not_heard(state.start_until, error_type, now, limits)
        case Elapsed():
            return _not_heard(state.start_until, "connect_timeout", now, limits)
        case _:
            return state, ()


def _pausing(state: Pausing, event: Event, now: float, limits: Limits) -> Step:
    if isinstance(event, Elapsed):
        return Connecting(state.start_until, now + limits.echo_timeout), (Connect(),)
    return state, ()


def _asking(state: Asking, event: Event, now: float, limits: Limits) -> Step:
    match event:
        case Failed(error_type):
            return _away(error_type, now, limits)
        case Committed() if now >= state.start_until:
            return Refused(state.error_type), (Refuse(),)
        case Committed():
            return Pausing(state.start_until, min(now + limits.backoff_cap, state.start_until)), ()
        case _:
            return state, ()


def _proving(state: Proving, event: Event, now: float, limits: Limits) -> Step:
    match event:
        case Committed():
            patience = now + limits.echo_timeout
            return replace(state, until=max(patience, state.start_until or patience)), ()
        case Echoed():
            watch = Notifying(echoed=True) if state.until is None else Resting(now + limits.watchdog_interval)
            return Reconciling(state.start_until, watch), (Reconcile(),)
        case Broke(error_type):
            return _not_heard(state.start_until, error_type, now, limits)
        case Elapsed():
            return _not_heard(state.start_until, "echo_timeout", now, limits)
        case Failed(error_type) if state.start_until is not None:
            return _away(error_type, now, limits)
        case Failed():
            return _pause(now, limits)
        case _:
            return state, ()


def _hearing(state: Reconciling | Hearing, event: Event, now: float, limits: Limits) -> Step:
    rested = replace(state, watch=Resting(now + limits.watchdog_interval))
    match event, state.watch:
        case Reconciled(), watch if isinstance(state, Reconciling):
            return Hearing(watch), (TellHearing(restored=state.start_until is None),)
        case Echoed(), Notifying():
            return replace(state, watch=Notifying(echoed=True)), ()
        case Echoed(), Awaiting():
            return rested, ()
        case Committed(), Notifying(echoed=False):
            return replace(state, watch=Awaiting(now + limits.echo_timeout)), ()
        case ((Committed() | Failed()), Notifying()):
            return rested, ()
        case Elapsed(), Resting():
            return replace(state, watch=Notifying()), (NotifySelf(),)
        case Elapsed(), Awaiting():
            return _lose(state, "echo_timeout", now, limits)
        case Broke(error_type), _:
            return _lose(state, error_type, now, limits)
        case _:
            return state, ()


def _lose(state: Reconciling | Hearing, error_type: str, now: float, limits: Limits) -> Step:
    """A connection that was good is dialled again at once; one that only just came waits its turn, or we would spin."""
    match state:
        case Hearing():
            again = Connecting(None, now + limits.echo_timeout)
            return again, (Disconnect(), TellLost(error_type), Connect())
        case Reconciling(start_until=None):
            return _pause(now, limits)
        case Reconciling():
            return _away(error_type, now, limits)
        case _:
            assert_never(state)


def _not_heard(start_until: float | None, error_type: str, now: float, limits: Limits) -> Step:
    """An attempt failed. Only at the start it matters whether the database answers otherwise."""
    if start_until is None:
        return _pause(now, limits)
    return Asking(start_until, error_type), (Disconnect(), NotifySelf())


def _away(error_type: str, now: float, limits: Limits) -> Step:
    """The database is away at the start, which is no reason not to start."""
    state, effects = _pause(now, limits)
    return state, (*effects, TellLost(error_type))


def _pause(now: float, limits: Limits) -> Step:
    return Pausing(None, now + limits.backoff_cap), (Disconnect(),)
