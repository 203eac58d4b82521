"""``make demo``: everything on this machine, until Ctrl-C; with ``--check`` a try from outside instead."""

from __future__ import annotations

import argparse
import ctypes
import os
import shlex
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import NoReturn

from bothy_kit.demo_check import CheckError, check
from bothy_kit.demo_world import World, running_world
from bothy_kit.nginx import NginxError
from bothy_kit.postgres import PostgresMissingError
from bothy_kit.programs import Program, ProgramError, command
from bothy_kit.world_parts import HOST, Say

_PR_SET_CHILD_SUBREAPER = 36
_LEFT_S = 5.0
_WATCH_S = 0.5
_AGAIN_S = 10.0


class Stopped(BaseException):
    """Somebody asked us to end; not an error, so nothing that handles errors may take it."""


def main() -> int:
    """The exit status: 0, or 1 when something failed."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--check", action="store_true", help="open a session through it, try it, and end")
    checking = parser.parse_args().check
    _adopt_orphans()
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, _stop)
    say = _Progress().say
    folder: Path | None = None
    try:
        with running_world(say) as world:
            folder = world.folder
            if checking:
                check(world, say)
            else:
                _serve(world, say)
            say("stopping")
    except Stopped:
        pass
    except (CheckError, ProgramError, NginxError, PostgresMissingError) as error:
        print(f"\nfailed: {error}", file=sys.stderr)
        return 1
    if _anything_left(folder):
        print("failed: a process or a folder was left behind", file=sys.stderr)
        return 1
    say("nothing is left behind")
    return 0


def _stop(_number: int, _frame: FrameType | None) -> NoReturn:
    """Once: a second Ctrl-C must not interrupt the stopping."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    raise Stopped


class _Progress:
    """Lines with the seconds since the start."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def say(self, what: str) -> None:
        print(f"{time.monotonic() - self._begun:6.1f} s  {what}", flush=True)


def _serve(world: World, say: Say) -> None:
    line = f"BOTHY_HOME={shlex.quote(world.device['BOTHY_HOME'])} {shlex.quote(command('bothy'))} open {HOST}"
    print(f"\nin a browser      {world.link()}\n                  which signs in once")
    print(f"in a terminal     {line}\nlogs              {world.folder}/*.log")
    print("\nCtrl-C stops everything.", flush=True)
    while True:
        for each in world.programs:
            _keep(each, say)
        time.sleep(_WATCH_S)


def _keep(program: Program, say: Say) -> None:
    """Start again what the console can stop. Raises :class:`ProgramError` for every other end."""
    match program.ended:
        case 0:
            say(f"{program.name} was drained, and starts again")
        case 3:  # what bothy-host says where it is disabled
            say(f"{program.name} may not serve; it asks again in {_AGAIN_S:.0f} s")
            time.sleep(_AGAIN_S)
        case _:
            return program.check()
    return program.start()


def _adopt_orphans() -> None:
    """Whatever our children leave behind becomes our child, so that it can be seen at the end."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def _anything_left(folder: Path | None) -> bool:
    deadline = time.monotonic() + _LEFT_S
    while True:
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return folder is not None and folder.exists()
        if ended == 0 and time.monotonic() > deadline:
            return True
        if ended == 0:
            time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
