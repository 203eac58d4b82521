from __future__ import annotations

import pytest

import coverage_check


def file(covered: int, lines: int, covered_branches: int = 0, branches: int = 0) -> dict[str, dict[str, int]]:
    counts = {"covered_lines": covered, "num_statements": lines}
    return {"summary": counts | {"covered_branches": covered_branches, "num_branches": branches}}


def test_coverage_is_added_up_by_room() -> None:
    rooms = coverage_check.by_room(
        {
            "services/server/bothy_server/hosts/app/pairing.py": file(8, 8, 1, 2),
            "services/server/bothy_server/terminal/app/sweep.py": file(10, 10),
            "services/server/bothy_server/terminal/domain/rendezvous/rule.py": file(5, 5),
            "services/wire/bothy_wire/ids.py": file(1, 2),
        }
    )
    assert {name: round(room.percent) for name, room in rooms.items()} == {
        "bothy_server/app": 95,
        "bothy_server/domain": 100,
        "bothy_wire": 50,
    }


@pytest.mark.parametrize(("least", "good"), [(95, True), (96, False)])
def test_coverage_below_a_threshold_fails(least: int, good: bool) -> None:
    rooms = {"bothy_server/app": coverage_check.Reached(95, 100), "bothy_wire": coverage_check.Reached(90, 100)}
    text, outcome = coverage_check.table(rooms, {"bothy_server/app": least})
    assert outcome is good
    assert ("too low" in text) is not good
    assert text.splitlines()[2].split() == ["bothy_wire", "90.0", "90"]
