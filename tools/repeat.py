"""Run tests many times under load and count what failed: ``python tools/repeat.py [--rounds N] [PATH ...]``.

A test that trusts the machine to be quick passes alone and fails here. Every processor is kept busy by a program of its own,
which ends by itself when this one is gone, however that happens.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

PATHS = ["test/multinode"]
"""What is run unless told otherwise: several nodes over one database."""

_BUSY = "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n    sum(range(100_000))"
_BEGUN = re.compile(r"^(\S+::\S+) ", re.MULTILINE)
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@contextlib.contextmanager
def load(processes: int) -> Iterator[None]:
    """Keep that many processors busy meanwhile."""
    busy = [subprocess.Popen([sys.executable, "-c", _BUSY, str(os.getpid())]) for _ in range(processes)]
    try:
        yield
    finally:
        for each in busy:
            each.kill()
            each.wait()


def one_round(paths: list[str], minutes: float) -> tuple[int, list[str], str]:
    """Pytest's exit status, the tests that failed, and what it printed; 1 when it is not through in so many minutes."""
    command = [sys.executable, "-m", "pytest", "-v", "-rfE", "--color=no", *paths]
    done = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        said, _ = done.communicate(timeout=minutes * 60)
    except subprocess.TimeoutExpired:
        done.send_signal(signal.SIGINT)  # pytest tells where it was, and stops what its tests started
        said, _ = done.communicate()
        begun = _BEGUN.findall(said)
        return 1, [f"{begun[-1] if begun else 'pytest'} did not end"], said
    return done.returncode, _FAILED.findall(said), said


def table(failed: collections.Counter[str], rounds: int) -> str:
    """One line for each test that failed at least once, the worst first."""
    if not failed:
        return f"no test failed in {rounds} rounds"
    return "\n".join(f"{count:>4} of {rounds}  {test}" for test, count in failed.most_common())


def main(arguments: list[str] | None = None) -> int:
    """The exit status: 1 when a round failed."""
    parser = argparse.ArgumentParser(description="Run tests many times under load.")
    parser.add_argument("paths", nargs="*", default=PATHS, metavar="PATH", help="what pytest is given")
    parser.add_argument("--rounds", type=int, default=10, metavar="N")
    parser.add_argument("--minutes", type=float, default=30, metavar="N", help="the longest that one round may take")
    parser.add_argument(
        "--load", type=int, default=os.cpu_count() or 1, metavar="N", help="busy processes beside the tests"
    )
    parser.add_argument(
        "--json", action="store_true", help="the result as JSON on standard output, the rest on standard error"
    )
    wanted = parser.parse_args(arguments)
    news = sys.stderr if wanted.json else sys.stdout
    failed: collections.Counter[str] = collections.Counter()
    rounds = []
    with load(wanted.load):
        for number in range(1, wanted.rounds + 1):
            begun = time.monotonic()
            status, tests, said = one_round(wanted.paths, wanted.minutes)
            seconds = time.monotonic() - begun
            failed.update(tests)
            rounds.append({"status": status, "seconds": round(seconds, 1), "failed": tests})
            if status:
                print(said, file=news)
            outcome = "ok" if status == 0 else "FAILED"
            print(f"round {number:>3} of {wanted.rounds}  {outcome:<6} {seconds:>7.1f} s", file=news, flush=True)
    print(table(failed, wanted.rounds), file=news)
    if wanted.json:
        print(json.dumps({"rounds": rounds, "failed": dict(failed)}))
    return 0 if all(each["status"] == 0 for each in rounds) else 1


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(130)
