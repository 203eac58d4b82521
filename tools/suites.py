"""Run the suites of CI one after the other and print the minutes each took: ``python tools/suites.py``.

A suite is a target of the Makefile. All of them run, also after a failure, so that one run tells everything.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

BUDGET_MINUTES = {
    "static": 2,
    "unit": 3,
    "multinode": 5,
    "answers": 1,
    "edge": 3,
    "browser": 6,
    "package": 1,
    "demo-test": 3,
    "chaos-quick": 4,
    "docker-ci": 10,
    "audit": 1,
}
"""Minutes that each suite may take on two cores; more is printed, and fails nothing."""


def table(taken: dict[str, tuple[bool, float]]) -> str:
    """One line for each suite: outcome, minutes, budget."""
    lines = [f"{'suite':<12} {'':<6} {'minutes':>8} {'budget':>7}"]
    for suite, (passed, seconds) in taken.items():
        over = "  over budget" if seconds > 60 * BUDGET_MINUTES[suite] else ""
        outcome = "ok" if passed else "FAILED"
        lines.append(f"{suite:<12} {outcome:<6} {seconds / 60:>8.1f} {BUDGET_MINUTES[suite]:>7}{over}")
    return "\n".join(lines)


def main() -> int:
    """The exit status: 1 when a suite failed."""
    make = os.environ.get("MAKE", "make")
    taken = {}
    for suite in BUDGET_MINUTES:
        print(f"== {suite}", flush=True)
        begun = time.monotonic()
        passed = subprocess.run([make, "--no-print-directory", suite], check=False).returncode == 0
        taken[suite] = (passed, time.monotonic() - begun)
    print(table(taken))
    return 0 if all(passed for passed, _ in taken.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
