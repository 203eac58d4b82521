"""Print what the tests reached, per room of each package, and fail below the thresholds: ``python tools/coverage_check.py``.

Reads ``.coverage``, which ``make coverage`` writes. A threshold is what was measured when it was set, rounded down; raise it
with the tests, never lower it. The aim is 100 % of the branches of ``domain`` and ``app``, and 90 % elsewhere.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOMS = ("domain", "app", "adapters")
THRESHOLDS = {
    "bothy_device": 93,
    "bothy_host": 96,
    "bothy_server": 98,
    "bothy_server/adapters": 99,
    "bothy_server/app": 99,
    "bothy_server/domain": 99,
    "bothy_wire": 99,
}
"""Percent of lines and branches together, for each room."""


@dataclass(slots=True)
class Reached:
    """Lines and branches of one room."""

    reached: int = 0
    of: int = 0

    @property
    def percent(self) -> float:
        """100 for a room without code."""
        return 100 * self.reached / self.of if self.of else 100


def by_room(files: Mapping[str, Any]) -> dict[str, Reached]:
    """``files`` of coverage's JSON report, added up: ``bothy_server/domain`` for that room of all features."""
    rooms: defaultdict[str, Reached] = defaultdict(Reached)
    for name, file in sorted(files.items()):
        summary, room = file["summary"], rooms[_room(Path(name))]
        room.reached += summary["covered_lines"] + summary["covered_branches"]
        room.of += summary["num_statements"] + summary["num_branches"]
    return dict(rooms)


def _room(file: Path) -> str:
    package = next(part for part in file.parts if part.startswith("bothy_"))
    inside = file.parts[file.parts.index(package) + 1 :]
    return next((f"{package}/{room}" for room in ROOMS if room in inside), package)


def table(rooms: Mapping[str, Reached], thresholds: Mapping[str, int]) -> tuple[str, bool]:
    """One line for each room, and whether all reach their threshold; a room without one needs 90."""
    lines, good = [f"{'room':<24} {'percent':>8} {'at least':>9}"], True
    for name, room in rooms.items():
        least = thresholds.get(name, 90)
        enough = room.percent >= least
        good &= enough
        lines.append(f"{name:<24} {room.percent:>8.1f} {least:>9}{'' if enough else '  too low'}")
    return "\n".join(lines), good


def main() -> int:
    """The exit status: 1 below a threshold."""
    words = [sys.executable, "-m", "coverage", "json", "--quiet", "-o", "-"]
    report = subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout
    text, good = table(by_room(json.loads(report)["files"]), THRESHOLDS)
    print(text)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
