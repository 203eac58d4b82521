"""When a device dials again, asks for a new stream token, waits for its person, or stops: the pure reconnect rule.

No time, no chance and no socket in here: the first two are arguments, the last is the shell's business.

::

    DIALLING --Accepted--> UP --Lost, Declined--> WAITING --Passed--> DIALLING    while the stream token lives
       ^  |                 ^                      ^  |
       |  +--Lost, Unreached+----------------------+  +----Passed----> ATTACHING   when it does not, or "attach"
       |                                           |                      |
       +------------------Attached-----------------+--Refused, Unreached--+
    REPLACED --Now--> ATTACHING: the session went on on another device, and only a person takes it back
    STOPPED: trying again would be wrong
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import assert_never

from bothy_wire.backoff import Backoff, delay
from bothy_wire.close_codes import CloseCode, retry_of

LATER = frozenset({"host_unavailable", "idempotency_running", "internal", "rate_limited", "unavailable"})
"""Problem codes of an attach that pass by themselves; every other one is final."""
ATTACH = frozenset({"token_expired", "token_replayed"})
"""Refusals by the host that a new stream token heals."""


class Phase(Enum):
    """Where the device is on its way to the terminal."""

    DIALLING = auto()
    ATTACHING = auto()
    UP = auto()
    WAITING = auto()
    REPLACED = auto()
    STOPPED = auto()


@dataclass(frozen=True, slots=True)
class State:
    """All that the rule remembers."""

    phase: Phase
    token_until: float
    """When the stream token is too old."""
    once: bool = False
    """Stop at the first loss."""
    reached: bool = False
    """The terminal was reached before. Until then only the first stream token is used: an opening that failed has ended."""
    attach: bool = False
    """The stream token is of no more use, whatever its age."""
    tries: int = 0
    due: float = 0.0
    """When to try next; for ``WAITING``."""
    paired_at: float | None = None
    doubted: bool = False
    """The host did not know the session; a second time it is final."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The relay accepted the connection."""


@dataclass(frozen=True, slots=True)
class Paired:
    """The channel is open: the terminal is reached."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The attempt or the connection ended with this close code; 1006 without one."""

    code: int


@dataclass(frozen=True, slots=True)
class Declined:
    """The host refused the handshake with this code."""

    code: str


@dataclass(frozen=True, slots=True)
class Unreached:
    """Dialling or attaching found no relay."""


@dataclass(frozen=True, slots=True)
class Attached:
    """There is a new stream token, which lives until then."""

    token_until: float


@dataclass(frozen=True, slots=True)
class Refused:
    """The relay refused the attach with this problem code, and asks for so many seconds of patience."""

    code: str
    retry_after: float = 0.0


@dataclass(frozen=True, slots=True)
class Passed:
    """The deadline came."""


@dataclass(frozen=True, slots=True)
class Now:
    """A person wants a try now."""


@dataclass(frozen=True, slots=True)
class Woke:
    """This machine slept: what was connected is not any more, and nothing that was waited for is worth a wait."""


Event = Accepted | Paired | Lost | Declined | Unreached | Attached | Refused | Passed | Now | Woke


@dataclass(frozen=True, slots=True)
class Dial:
    """Dial with the stream token."""


@dataclass(frozen=True, slots=True)
class Attach:
    """Ask for a new stream token; with ``take`` also when another device holds the session now."""

    take: bool = False


@dataclass(frozen=True, slots=True)
class Stop:
    """Try no more; the event says why."""


Effect = Dial | Attach | Stop


def start(now: float, life: float, *, once: bool = False) -> State:
    """The first stream token was just received and lives ``life`` seconds: dial."""
    return State(Phase.DIALLING, now + life, once=once)


def deadline(state: State) -> float | None:
    """When :class:`Passed` is due."""
    return state.due if state.phase is Phase.WAITING else None


def step(state: State, event: Event, now: float, *, backoff: Backoff, chance: float) -> tuple[State, Effect | None]:
    """One event. ``chance`` is a fresh random number from 0 up to 1, used for jitter only."""
    match state.phase, event:
        case Phase.DIALLING, Accepted():
            return replace(state, phase=Phase.UP, paired_at=None), None
        case Phase.UP, Paired():
            return replace(state, paired_at=now, reached=True, doubted=False), None
        case ((Phase.DIALLING | Phase.UP), Lost(code)):
            return _lost(_rested(state, now, backoff), code, now, backoff, chance)
        case Phase.UP, Declined(code):
            return _declined(state, code, now, backoff, chance)
        case ((Phase.DIALLING | Phase.ATTACHING), Unreached()):
            return _wait(state, now, backoff.soon, backoff, chance) if state.reached else _stop(state)
        case Phase.ATTACHING, Attached(token_until):
            return replace(state, phase=Phase.DIALLING, token_until=token_until, attach=False), Dial()
        case Phase.ATTACHING, Refused("replaced"):
            return replace(state, phase=Phase.REPLACED), None
        case Phase.ATTACHING, Refused(code, retry_after):
            return _wait(state, now, backoff.later, backoff, chance, retry_after) if code in LATER else _stop(state)
        case Phase.WAITING, Passed() if now >= state.due:
            return _try(state, now)
        case Phase.WAITING, Now():
            return _try(state, now)
        case Phase.REPLACED, Now():
            return replace(state, phase=Phase.ATTACHING, tries=0), Attach(take=True)
        case ((Phase.DIALLING | Phase.ATTACHING | Phase.UP | Phase.WAITING), Woke()):
            return _stop(state) if state.once else _try(replace(state, tries=0), now)
        case _:
            return state, None


def _rested(state: State, now: float, backoff: Backoff) -> State:
    long = state.paired_at is not None and now - state.paired_at >= backoff.settle
    return replace(state, tries=0) if long else state


def _lost(state: State, code: int, now: float, backoff: Backoff, chance: float) -> tuple[State, Effect | None]:
    if code == CloseCode.REPLACED and state.reached and not state.once:
        return replace(state, phase=Phase.REPLACED), None
    retry = retry_of(code, "stream")
    match retry:
        case "never" | "wait":
            return _stop(state)
        case "later":
            return _wait(state, now, backoff.later, backoff, chance)
        case "attach":
            return _wait(replace(state, attach=True), now, backoff.soon, backoff, chance)
        case "soon":
            # A node that leaves sends all its devices at once: their first try is spread over the whole second.
            low = 0.0 if code == CloseCode.RESTART and not state.tries else backoff.soon[0]
            return _wait(state, now, (low, backoff.soon[1]), backoff, chance)
    assert_never(retry)


def _declined(state: State, code: str, now: float, backoff: Backoff, chance: float) -> tuple[State, Effect | None]:
    unknown = code == "session_unknown"
    if code in ATTACH or (unknown and not state.doubted):
        return _wait(replace(state, attach=True, doubted=unknown), now, backoff.soon, backoff, chance)
    return _stop(state)


def _wait(
    state: State, now: float, first: tuple[float, float], backoff: Backoff, chance: float, at_least: float = 0.0
) -> tuple[State, Effect | None]:
    if state.once or (state.attach and not state.reached):
        return _stop(state)
    due = now + at_least + delay(first, state.tries, backoff.cap, chance)
    return replace(state, phase=Phase.WAITING, due=due, tries=state.tries + 1), None


def _try(state: State, now: float) -> tuple[State, Effect | None]:
    if not state.attach and now < state.token_until:
        return replace(state, phase=Phase.DIALLING), Dial()
    if not state.reached:
        return _stop(state)
    return replace(state, phase=Phase.ATTACHING, attach=True), Attach()


def _stop(state: State) -> tuple[State, Effect]:
    return replace(state, phase=Phase.STOPPED), Stop()
