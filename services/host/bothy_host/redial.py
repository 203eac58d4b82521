"""When to dial, when to wait and when to stop: the pure reconnect rule of control and data connections.

It keeps one connection up. The rule looks at the newest attempt only; that an older data connection stays until a
newer one is accepted is the shell's business. No time, no chance and no socket in here: both are arguments.

::

    Idle, Stopped ---Wanted---> Dialling ---Accepted---> Up
                                 |    ^                  |
                                 |    | Passed, Wanted,  |
                                 |    | Woke             |
                                 +-> Waiting <-- Lost ---+   retry "soon", "later"
                                 +-> Stopped <-- Lost ---+   retry "never", "wait"
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from bothy_wire.backoff import Backoff, delay
from bothy_wire.close_codes import Client, retry_of


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing to do until somebody wants a connection."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The next dial is due at ``until``."""

    until: float
    tries: int


@dataclass(frozen=True, slots=True)
class Dialling:
    """An attempt is under way."""

    tries: int


@dataclass(frozen=True, slots=True)
class Up:
    """The newest attempt was accepted."""

    since: float
    tries: int


@dataclass(frozen=True, slots=True)
class Stopped:
    """Dialling again would be wrong, unless the server asks for it."""

    code: int


State = Idle | Waiting | Dialling | Up | Stopped


@dataclass(frozen=True, slots=True)
class Wanted:
    """A new connection was asked for, also while one is up."""


@dataclass(frozen=True, slots=True)
class Passed:
    """The deadline came."""


@dataclass(frozen=True, slots=True)
class Woke:
    """This machine slept, so whatever was tried and failed before says nothing."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The newest attempt was accepted."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The newest attempt or connection ended with this close code; 1006 for everything that has none."""

    code: int


Event = Wanted | Passed | Woke | Accepted | Lost


@dataclass(frozen=True, slots=True)
class Dial:
    """Start an attempt."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Do not dial again by yourself; the code says why."""

    code: int


Effect = Dial | Stop


def step(
    state: State, event: Event, now: float, *, client: Client, backoff: Backoff, chance: float
) -> tuple[State, tuple[Effect, ...]]:
    """One event. ``chance`` is a fresh random number from 0 up to 1, used for jitter only."""
    match state, event:
        case ((Idle() | Up() | Stopped()), Wanted()):
            return Dialling(0), (Dial(),)
        case Waiting(tries=tries), Wanted():
            return Dialling(tries), (Dial(),)
        case Waiting(until=until, tries=tries), Passed() if now >= until:
            return Dialling(tries), (Dial(),)
        case Waiting(), Woke():
            return Dialling(0), (Dial(),)
        case ((Dialling() | Up()), Woke()):
            return replace(state, tries=0), ()
        case Dialling(tries=tries), Accepted():
            return Up(now, tries), ()
        case Dialling(tries=tries), Lost(code):
            return _after(code, tries, now, client=client, backoff=backoff, chance=chance)
        case Up(since=since, tries=tries), Lost(code):
            fresh = now - since >= backoff.settle
            return _after(code, 0 if fresh else tries, now, client=client, backoff=backoff, chance=chance)
        case _:
            return state, ()


def deadline(state: State) -> float | None:
    """When :class:`Passed` is due."""
    match state:
        case Waiting(until=until):
            return until
        case Idle() | Dialling() | Up() | Stopped():
            return None
    assert_never(state)


def _after(
    code: int, tries: int, now: float, *, client: Client, backoff: Backoff, chance: float
) -> tuple[State, tuple[Effect, ...]]:
    match retry_of(code, client):
        case "never" | "wait":
            return Stopped(code), (Stop(code),)
        case "later":
            return Waiting(now + delay(backoff.later, tries, backoff.cap, chance), tries + 1), ()
        case "soon" | "attach":
            return Waiting(now + delay(backoff.soon, tries, backoff.cap, chance), tries + 1), ()
