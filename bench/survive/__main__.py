"""``make survive``: every node is restarted in turn while many sessions print and echo; what is lost, and for how long.

Everything real but the ends: nodes, nginx and PostgreSQL are processes, hosts and devices are light ones that speak the real
channel over the real sockets. Writes ``bench/results/survive.json`` and the table of ``docs/performance.md``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bothy_kit.figures import leave, percentiles
from bothy_kit.processes import start, stop
from bothy_kit.spoilable_world import SpoilableWorld, Terms, spoilable_world

_LOAD = Path(__file__).with_name("load.py")
_LOADS = 2
"""Processes of load; a host reports at most 512 sessions."""
_QUIET_S = 10.0
"""Between the restarts, so that each is measured alone."""
_DRAIN_S = 120.0
_PROBATION_S = 7.0
"""A host that has just connected gets no orders for twice ``terminal.host_duplicate_probe_timeout``."""


def main() -> int:
    """The exit status: 1 when a byte or a session was lost."""
    parser = argparse.ArgumentParser(prog="make survive", description=__doc__)
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON, and the progress elsewhere")
    wanted = parser.parse_args()
    begun = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - begun:6.1f} s  {what}", file=sys.stderr if wanted.json else sys.stdout, flush=True)

    most = str(2 * wanted.sessions)
    terms = Terms(
        server={
            "BOTHY_TERMINAL__MAX_SESSIONS_PER_PERSON": most,
            "BOTHY_TERMINAL__MAX_SESSIONS_PER_HOST": most,
            "BOTHY_TERMINAL__OPEN_RATE": f"{most} per second",
            "BOTHY_IDENTITY__ADDRESS_RATE": f"{most} per second",
            "BOTHY_TERMINAL__MAX_PENDING_PER_NODE": most,
            "BOTHY_IDENTITY__ACCESS_TOKEN_TTL": "3600",
        }
    )
    with spoilable_world(say, terms) as world, ExitStack() as stack:
        loads = [stack.enter_context(_load(world, f"load-{n}", wanted.sessions // _LOADS)) for n in range(_LOADS)]
        for each in loads:
            _answer(each)
        say(f"{wanted.sessions} sessions are open")
        time.sleep(_QUIET_S)
        for node, program in world.nodes.items():
            drained = time.monotonic()
            program.stop(within_s=_DRAIN_S)
            say(f"{node.name} has left after {time.monotonic() - drained:.1f} s")
            program.start()
            world.wait_ready(node)
            time.sleep(_QUIET_S)
        for each in loads:
            _tell(each, "end")
        figures = _together([_answer(each) for each in loads])
        figures["ended"] += sum(state == "closed" for state, _ in world.sessions().values())
    print(json.dumps(figures) if wanted.json else _table(figures))
    leave("survive", figures, _table(figures))
    return 1 if figures["output_lost"] or figures["input_lost"] or figures["ended"] else 0


@contextmanager
def _load(world: SpoilableWorld, name: str, sessions: int) -> Iterator[subprocess.Popen[bytes]]:
    order = {
        "url": world.edge.url,
        "invite": world.invite(),
        "code": world.add_host(name),
        "sessions": sessions,
        "probation_s": _PROBATION_S,
    }
    process = start([sys.executable, _LOAD], stdin=subprocess.PIPE, output=subprocess.PIPE)
    try:
        _tell(process, json.dumps(order))
        yield process
    finally:
        stop(process)


def _tell(load: subprocess.Popen[bytes], words: str) -> None:
    assert load.stdin is not None
    load.stdin.write(words.encode() + b"\n")
    load.stdin.flush()


def _answer(load: subprocess.Popen[bytes]) -> dict[str, Any]:
    """The next line of JSON; whatever else it prints is shown. Raises :class:`RuntimeError` when it ends instead."""
    assert load.stdout is not None
    for line in load.stdout:
        if line.startswith(b"{"):
            answer: dict[str, Any] = json.loads(line)
            return answer
        print(line.decode(errors="replace"), end="", file=sys.stderr)
    raise RuntimeError("the load has ended")


def _together(loads: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The sum of each figure; times go into one list."""
    together: dict[str, Any] = {}
    for figures in loads:
        for name, figure in figures.items():
            together[name] = together[name] + figure if name in together else figure
    return together


def _table(figures: dict[str, Any]) -> str:
    gaps = [f"{each:.2f} s" for each in percentiles(figures["gaps_s"], 50, 95, 99, 100)] or ["-"] * 4
    cells = [str(figures[each]) for each in ("sessions", "output_lost", "input_lost", "repaints", "ended")]
    head = "| sessions | output lost | input lost | repaints | sessions ended | gaps | p50 | p95 | p99 | longest |"
    row = " | ".join([*cells, str(len(figures["gaps_s"])), *gaps])
    return f"{head}\n{'| --- ' * 10}|\n| {row} |"


if __name__ == "__main__":
    sys.exit(main())
