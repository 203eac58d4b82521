"""``make chaos``: break every part of a running world and see what a terminal loses; ``--quick`` is what CI runs.

The exit status is 1 when a promise was broken. A full run writes its result and the table of ``docs/performance.md``.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from dataclasses import asdict
from types import FrameType
from typing import NoReturn

import report
from runner import Result, run
from scenarios import SCENARIOS

from bothy_kit.figures import leave
from bothy_kit.nginx import NginxError
from bothy_kit.postgres import PostgresMissingError
from bothy_kit.programs import ProgramError


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="each fault once, with shortened time limits")
    parser.add_argument("--json", action="store_true", help="print the result as JSON, and the progress elsewhere")
    parser.add_argument(
        "--only", metavar="WORDS", default="", help="scenarios whose name holds one of these, separated by commas"
    )
    wanted = parser.parse_args()
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, _stop)
    begun = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - begun:6.1f} s  {what}", file=sys.stderr if wanted.json else sys.stdout, flush=True)

    chosen = [each for each in SCENARIOS if any(words in each.name for words in wanted.only.split(","))]
    results: list[Result] = []
    try:
        results.extend(run(chosen, quick=wanted.quick, say=say))  # those before an error stay
    except (ProgramError, NginxError, PostgresMissingError) as error:
        print(f"failed: {error}", file=sys.stderr)
    if wanted.json:
        print(json.dumps([asdict(each) for each in results], indent=1))
    else:
        print(report.table(results))
    if len(results) < len(chosen):
        return 1
    if not wanted.quick and not wanted.only:
        leave("chaos", [asdict(each) for each in results], report.table(results))
    return 1 if any(each.failure or each.sessions_ended for each in results) else 0


def _stop(_number: int, _frame: FrameType | None) -> NoReturn:
    """Once: a second Ctrl-C must not interrupt the stopping."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    raise SystemExit(130)


if __name__ == "__main__":
    sys.exit(main())
