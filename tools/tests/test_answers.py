"""What is declared and never seen is found, whoever else was seen."""

from __future__ import annotations

from pathlib import Path

import pytest

import answers
from bothy_server.platform.operations import operations_of
from openapi import adapters

ROWS = [row for kind in adapters() for row, _ in operations_of(kind)]
ALL = answers.declared(ROWS)


def written(path: Path, found: set[answers.Answer], test: str = "test_hosts.py::test_a_host") -> str:
    path.write_text("".join(f"{name} {status} {code} {test}\n" for name, status, code in sorted(found)))
    return str(path)


def test_answers_of_an_operation_are_its_success_and_all_its_refusals() -> None:
    (row,) = (row for row in ROWS if row.name == "get_host")
    found = answers.declared([row])
    assert {("get_host", 200, "-"), ("get_host", 404, "host_unknown"), ("get_host", 503, "unavailable")} <= found
    assert {name for name, _, _ in found} == {"get_host"}


def test_answers_may_be_seen_by_any_of_the_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    half = {answer for answer in ALL if answer[1] < 400}
    assert answers.main([written(tmp_path / "one", half), written(tmp_path / "two", ALL - half)]) == 0
    assert f"{len(ALL)} of {len(ALL)} answers" in capsys.readouterr().out


def test_answers_that_nobody_saw_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left_out = ("get_host", 404, "host_unknown")
    one = written(tmp_path / "one", ALL - {left_out})
    two = written(tmp_path / "two", {left_out}, "test/multinode/test_api_fuzz.py::test_everything[GET]")
    assert answers.main([one, two]) == 1
    assert "get_host: no test sees 404 host_unknown" in capsys.readouterr().out


def test_answers_of_a_run_that_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert answers.main([str(tmp_path / "none")]) == 1
    assert "run make unit multinode" in capsys.readouterr().out
