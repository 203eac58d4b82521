from __future__ import annotations

from pathlib import Path

import pytest

import adr_index

DECISION = "# 2. Two words\n\nDate: 2026-01-31. Status: accepted.\n"


def test_adr_index_lists_decisions_in_order(tmp_path: Path) -> None:
    (tmp_path / "0002-two-words.md").write_text(DECISION)
    (tmp_path / "0001-first.md").write_text("# 1. First\n\nDate: 2026-01-31. Status: superseded by 2.\n")
    assert adr_index.index(tmp_path).splitlines()[-2:] == [
        "| [0001](0001-first.md) | First | superseded by 2 |",
        "| [0002](0002-two-words.md) | Two words | accepted |",
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("0003-two-words.md", DECISION),
        ("0002_two.md", DECISION),
        ("0002-two.md", "# Two words\n\nDate: 2026-01-31. Status: accepted.\n"),
        ("0002-two.md", "# 2. Two words\n\nDate: 2026-01-31. Status: perhaps.\n"),
        ("0002-two.md", ""),
    ],
)
def test_adr_index_refuses_another_form(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(adr_index.DecisionError):
        adr_index.index(tmp_path)
