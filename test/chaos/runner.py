"""Runs scenarios in one world, each with a session of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from person import Account, PersonError, person
from scenarios import Scenario
from stage import FULL, QUICK, Scale, Stage

from bothy_kit.demo_world import HOST
from bothy_kit.programs import command
from bothy_kit.spoilable_world import SpoilableWorld, spoilable_world

_PULSE = Path(__file__).with_name("pulse.py")

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one scenario."""

    name: str
    promise: str
    gaps_s: list[float]
    """Seconds without an echo, each time."""
    sessions_ended: int
    account: Account | None
    """What came through; ``None`` when the device did not come so far."""
    failure: str | None
    """How the promise was broken."""


def run(scenarios: Sequence[Scenario], *, quick: bool, say: Say) -> list[Result]:
    """All of them, in order. Raises :class:`ProgramError` when the world does not start or does not last."""
    scale = QUICK if quick else FULL
    with spoilable_world(say, scale.terms) as world:
        return [_run(each, world, scale, each.quick if quick else each.full, say) for each in scenarios]


def _run(scenario: Scenario, world: SpoilableWorld, scale: Scale, rounds: int, say: Say) -> Result:
    gaps: list[float] = []
    account = failure = None
    world.wait_online()
    before = set(world.sessions())
    try:
        with person([command("bothy"), "open", HOST], world.device) as somebody:
            rate = scale.flood if scenario.rate is None else scenario.rate
            somebody.run([sys.executable, str(_PULSE), str(rate)])
            (session_id,) = set(world.sessions()) - before
            stage = Stage(world, scale, somebody, session_id)
            for fault in scenario.faults * rounds:
                somebody.keep_typing()
                somebody.wait_for_echo()
                with fault(stage) as begun:
                    somebody.wait_for_echo()
                    gaps.append(somebody.longest_silence(begun))
                world.check()
            ended = _ended(world, before)
            account = somebody.finish()
    except PersonError as error:
        ended = _ended(world, before)
        failure = str(error)
    failure = failure or _broken(scenario, account, ended)
    say(f"{scenario.name}: {len(gaps)} times, longest gap {max(gaps, default=0.0):.2f} s; {failure or 'kept'}")
    return Result(scenario.name, scenario.promise, gaps, ended, account, failure)


def _ended(world: SpoilableWorld, before: set[str]) -> int:
    """Sessions of the scenario that are over, before anybody ended them."""
    return sum(state == "closed" for session_id, (state, _) in world.sessions().items() if session_id not in before)


def _broken(scenario: Scenario, account: Account | None, ended: int) -> str | None:
    """In words, or ``None``."""
    match scenario.promise, account:
        case _ if ended:
            return f"{ended} sessions ended"
        case "bytes", Account(output_lost=0, input_lost=0, repaints=0):
            return None
        case "screen", Account(input_lost=0, screen_whole=True):
            return None
    return f"the promise of {scenario.promise} is broken: {account}"
