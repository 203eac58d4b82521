"""Where measurements are left: ``bench/results/NAME.json``, and a table between the marks of ``docs/performance.md``."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[3]
PAGE = _ROOT / "docs" / "performance.md"
RESULTS = _ROOT / "bench" / "results"


def percentiles(times: Sequence[float], *ranks: int) -> list[float]:
    """Those of ``times`` at the ranks (50 is the median), by the nearest rank; of nothing, nothing."""
    ordered = sorted(times)
    return [ordered[max(0, -(-len(ordered) * each // 100) - 1)] for each in ranks] if ordered else []


def leave(name: str, figures: Any, table: str) -> None:
    """Leave the figures and the table of one measurement where those of its last run are."""
    RESULTS.mkdir(exist_ok=True)
    made = {"day": f"{datetime.now(UTC):%Y-%m-%d}", "processors": os.cpu_count(), "figures": figures}
    (RESULTS / f"{name}.json").write_text(json.dumps(made, indent=1) + "\n")
    PAGE.write_text(with_table(PAGE.read_text(), name, table))


def with_table(page: str, name: str, table: str) -> str:
    """The page with another table between the marks of ``name``. Raises :class:`ValueError` when it has none."""
    begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"the page has no marks of {name}")
    return before + begin + table + end + after
