"""The results as a table, and where a full run leaves them: ``bench/results/chaos.json`` and ``docs/performance.md``."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from runner import Result

_ROOT = Path(__file__).resolve().parents[2]
_PAGE = _ROOT / "docs" / "performance.md"
_JSON = _ROOT / "bench" / "results" / "chaos.json"
_HEAD = """| what happens | times | promised | output lost | input lost | sessions ended | gap p50 | gap p95 | kept |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |"""


def table(results: Sequence[Result]) -> str:
    """In Markdown; one line for each scenario."""
    return "\n".join([_HEAD, *map(_line, results)])


def write(results: Sequence[Result]) -> None:
    """Leave them as JSON and as a table between the marks of the page."""
    _JSON.parent.mkdir(exist_ok=True)
    made = {"at": f"{datetime.now(UTC):%Y-%m-%d}", "processors": os.cpu_count(), "results": list(map(asdict, results))}
    _JSON.write_text(json.dumps(made, indent=1) + "\n")
    page = _PAGE.read_text()
    for mark, text in (("chaos", table(results)),):
        begin, end = f"<!-- {mark} -->\n", f"\n<!-- end of {mark} -->"
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}{text}{end}{rest.partition(end)[2]}"
    _PAGE.write_text(page)


def _line(result: Result) -> str:
    came = result.account
    lost = (
        ("-", "-") if came is None else ("(repaint)" if came.repaints else str(came.output_lost), str(came.input_lost))
    )
    gaps = [f"{each:.2f} s" for each in percentiles(result.gaps_s)] or ["-", "-"]
    cells = (
        result.name,
        str(len(result.gaps_s)),
        result.promise,
        *lost,
        str(result.sessions_ended),
        *gaps,
        "no" if result.failure else "yes",
    )
    return f"| {' | '.join(cells)} |"


def percentiles(times: Sequence[float]) -> list[float]:
    """The 50th and the 95th, by the nearest rank; of nothing, nothing."""
    ranked = sorted(times)
    return [ranked[-(-len(ranked) * each // 100) - 1] for each in (50, 95)] if ranked else []
