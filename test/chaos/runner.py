"""Runs scenarios in one world, each with a session of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from faults import Fault
from scenarios import Scenario
from stage import FULL, QUICK, Scale, Stage

from bothy_kit import pulse
from bothy_kit.person import Account, PersonError, person
from bothy_kit.programs import command
from bothy_kit.spoilable_world import SpoilableWorld, spoilable_world
from bothy_kit.world_parts import HOST

Say = Callable[[str], None]


@dataclass(slots=True)
class Result:
    """What became of one scenario."""

    name: str
    promise: str
    gaps_s: list[float] = field(default_factory=list)
    """Seconds without an echo, each time."""
    sessions: int = 0
    sessions_ended: int = 0
    """Those that were over before the person ended them."""
    output_lost: int = 0
    input_lost: int = 0
    repaints: int = 0
    failure: str | None = None
    """How the promise was broken; then the scenario ended early."""


def run(scenarios: Sequence[Scenario], *, quick: bool, say: Say) -> Iterator[Result]:
    """All of them, as they end. Raises :class:`ProgramError` when a world does not start or does not last."""
    scale = QUICK if quick else FULL
    for hurried in (False, True):
        of_world = [each for each in scenarios if each.hurried is hurried]
        if of_world:
            say("a world" + (", where back-off is short" if hurried else ""))
            with spoilable_world(say, scale.hurried if hurried else scale.unhurried) as world:
                for each in of_world:
                    yield _play(each, world, scale, each.quick if quick else each.full, say)


def _play(scenario: Scenario, world: SpoilableWorld, scale: Scale, rounds: int, say: Say) -> Result:
    result = Result(scenario.name, scenario.promise)
    faults = (scenario.faults * rounds,) if scenario.hurried else (scenario.faults,) * rounds
    for befalling in faults:
        world.wait_online()
        before = set(world.sessions())
        try:
            _live_through(befalling, scenario, world, scale, result)
        except PersonError as error:
            result.failure = str(error)
        result.sessions_ended += _ended(world, before)
        if result.failure is not None:
            break
    longest = max(result.gaps_s, default=0.0)
    say(f"{scenario.name}: {len(result.gaps_s)} times, longest gap {longest:.2f} s; {result.failure or 'kept'}")
    return result


def _live_through(
    faults: Sequence[Fault], scenario: Scenario, world: SpoilableWorld, scale: Scale, result: Result
) -> None:
    """One session, from its opening to its end by the person."""
    before = set(world.sessions())
    with person([command("bothy"), "open", HOST], world.device) as somebody:
        rate = scale.flood if scenario.rate is None else scenario.rate
        somebody.run([sys.executable, pulse.__file__, str(rate)])
        (session_id,) = set(world.sessions()) - before
        result.sessions += 1
        stage = Stage(world, scale, somebody, session_id)
        for fault in faults:
            somebody.keep_typing()
            somebody.wait_for_echo()
            with fault(stage) as begun:
                somebody.wait_for_echo()
                result.gaps_s.append(somebody.longest_silence(begun))
            world.check()
        account = somebody.finish()
    result.output_lost += account.output_lost
    result.input_lost += account.input_lost
    result.repaints += account.repaints
    match scenario.promise, account:
        case ("bytes", Account(output_lost=0, input_lost=0, repaints=0)) | (
            "screen",
            Account(input_lost=0, screen_whole=True),
        ):
            return
    result.failure = f"the promise of {scenario.promise} is broken: {account}"


def _ended(world: SpoilableWorld, before: set[str]) -> int:
    """Sessions that are over for another reason than the end of their program."""
    after = {each: reason for each, (state, reason) in world.sessions().items() if state == "closed"}
    return sum(reason != "process_exited" for each, reason in after.items() if each not in before)
