from __future__ import annotations

import re
from pathlib import Path

from bothy_wire.close_codes import MEANINGS, Retry

PAGE = Path(__file__).resolve().parents[3] / "docs" / "spec" / "close-codes.md"


def rows(columns: int) -> list[list[str]]:
    """The rows of the tables with so many columns, without their heads."""
    cells = [line.strip("|").split("|") for line in PAGE.read_text().splitlines() if re.match(r"\| (?!---)", line)]
    return [[cell.strip() for cell in row] for row in cells if len(row) == columns][1:]


def test_close_codes_page_has_the_table_of_the_code() -> None:
    assert rows(6) == [
        [str(int(code)), f"`{each.name}`", each.stream, each.data, each.control, each.text]
        for code, each in MEANINGS.items()
    ]


def test_close_codes_page_explains_every_retry() -> None:
    assert {row[0] for row in rows(2)} == set(Retry.__args__)
