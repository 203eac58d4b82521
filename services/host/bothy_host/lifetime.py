"""How long a session may live: idle, absence, total time and what is left behind an exit, as one pure rule.

Idle is measured only while a device is paired, by terminal bytes in either direction: a NOTICE at ``idle_timeout``, the
end ``idle_grace`` later. Without a device the session ends after ``detach_grace``, in any case after ``max_duration``.
When the program has ended only its last output waits for a device.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

EndReason = Literal["idle", "detach_expired", "max_duration", "process_exited"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Seconds."""

    idle_timeout: float
    idle_grace: float
    detach_grace: float
    max_duration: float

    def lower(self, other: Bounds) -> Bounds:
        """The lower of each; the server and this host both have a say."""
        return Bounds(
            min(self.idle_timeout, other.idle_timeout),
            min(self.idle_grace, other.idle_grace),
            min(self.detach_grace, other.detach_grace),
            min(self.max_duration, other.max_duration),
        )


@dataclass(frozen=True, slots=True)
class Running:
    """The program runs. ``since`` is the last byte while attached, else the moment that the device left."""

    started: float
    since: float
    attached: bool = True
    warned: bool = False


@dataclass(frozen=True, slots=True)
class Lingering:
    """The program ended; ``until`` then somebody may take its last output."""

    linger: float
    until: float


Lifetime = Running | Lingering


@dataclass(frozen=True, slots=True)
class Warn:
    """Tell the person that the session ends in ``seconds`` unless something is typed or printed."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Expire:
    """End the session."""

    reason: EndReason


def attached(life: Lifetime, now: float) -> Lifetime:
    """A device is paired and the channel is open."""
    match life:
        case Running():
            return replace(life, since=now, attached=True, warned=False)
        case Lingering():
            return exited(now, life.linger)


def detached(life: Lifetime, now: float) -> Lifetime:
    """The device left; a second leave changes nothing."""
    match life:
        case Running(attached=True):
            return replace(life, since=now, attached=False, warned=False)
        case _:
            return life


def moved(life: Lifetime, now: float) -> Lifetime:
    """A terminal byte passed."""
    match life:
        case Running(attached=True):
            return replace(life, since=now, warned=False)
        case _:
            return life


def acknowledged(life: Lifetime, now: float) -> Lifetime:
    """A device's terminal took output."""
    return exited(now, life.linger) if isinstance(life, Lingering) else life


def exited(now: float, linger: float) -> Lifetime:
    """The program ended; its last output waits for ``linger`` seconds, from the last that a device took."""
    return Lingering(linger, now + linger)


def deadline(life: Lifetime, bounds: Bounds) -> float:
    """When :func:`due` must be asked again."""
    match life:
        case Running():
            return min(life.started + bounds.max_duration, _next(life, bounds))
        case Lingering(_, until):
            return until


def due(life: Lifetime, now: float, bounds: Bounds) -> tuple[Lifetime, Warn | Expire | None]:
    """What the time asks for now."""
    if now < deadline(life, bounds):
        return life, None
    match life:
        case Lingering():
            return life, Expire("process_exited")
        case Running(started) if now >= started + bounds.max_duration:
            return life, Expire("max_duration")
        case Running(attached=False):
            return life, Expire("detach_expired")
        case Running(warned=True):
            return life, Expire("idle")
        case Running():
            return replace(life, warned=True), Warn(bounds.idle_grace)


def _next(life: Running, bounds: Bounds) -> float:
    if not life.attached:
        return life.since + bounds.detach_grace
    return life.since + bounds.idle_timeout + (bounds.idle_grace if life.warned else 0)
