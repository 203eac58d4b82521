from __future__ import annotations

from pathlib import Path

import suites


def test_suites_prints_minutes_and_budget() -> None:
    first, second = list(suites.BUDGET_MINUTES)[:2]
    lines = suites.table({first: (True, 30.0), second: (False, 6000.0)}).splitlines()
    assert lines[1].split() == [first, "ok", "0.5", str(suites.BUDGET_MINUTES[first])]
    assert lines[2].split()[:3] == [second, "FAILED", "100.0"]
    assert lines[2].endswith("over budget")


def test_suites_are_targets_of_the_makefile() -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    assert [suite for suite in suites.BUDGET_MINUTES if f"\n{suite}: " not in makefile] == []
