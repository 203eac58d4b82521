"""The page describes the checks of the code, in their order and words."""

from __future__ import annotations

from pathlib import Path

from bothy_server.doctor.finding import CHECKS

PAGE = Path(__file__).parents[4] / "docs" / "operations" / "doctor.md"


def test_doctor_page_has_the_checks_of_the_code() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert rows == [f"| `{each.name}` | {each.proves} | {each.blind} | {each.fix} |" for each in CHECKS.values()]
