"""What is declared and never seen is found, whoever else was seen."""

from __future__ import annotations

from pathlib import Path

import pytest

import answers
from bothy_server.platform.operations import operations_of
from openapi import adapters

ROWS = [row for kind in adapters() for row, _ in operations_of(kind)]
ALL = answers.declared(ROWS)


def written(path: Path, found: set[str], test: str = "test_hosts.py::test_a_host") -> str:
    path.write_text("".join(f"{words}\t{test}\n" for words in sorted(found)))
    return str(path)


def test_answers_of_an_operation_are_its_success_and_all_its_refusals() -> None:
    (row,) = (row for row in ROWS if row.name == "get_host")
    found = answers.declared([row])
    assert {"get_host 200", "get_host 404 host_unknown", "get_host 503 unavailable"} <= found
    assert {words.split()[0] for words in found} == {"get_host", "audit"}
    assert "audit host.state disabled" in found


def test_answers_may_be_seen_by_any_of_the_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    half = {words for words in ALL if " 2" in words}
    assert answers.main([written(tmp_path / "one", half), written(tmp_path / "two", ALL - half)]) == 0
    assert f"{len(ALL)} of {len(ALL)} answers" in capsys.readouterr().out


@pytest.mark.parametrize("left_out", ["get_host 404 host_unknown", "audit host.state disabled"])
def test_answers_that_nobody_saw_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], left_out: str) -> None:
    one = written(tmp_path / "one", ALL - {left_out})
    two = written(tmp_path / "two", {left_out}, "test/multinode/test_api_fuzz.py::test_everything[GET]")
    assert answers.main([one, two]) == 1
    assert f"no test sees: {left_out}" in capsys.readouterr().out


def test_answers_of_a_run_that_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert answers.main([str(tmp_path / "none")]) == 1
    assert "run make unit multinode" in capsys.readouterr().out
