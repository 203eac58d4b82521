"""The results as a table."""

from __future__ import annotations

from collections.abc import Sequence

from runner import Result

from bothy_kit.figures import percentiles

_HEAD = """| what happens | times | promised | output lost | input lost | sessions ended | gap p50 | gap p95 | kept |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |"""


def table(results: Sequence[Result]) -> str:
    """In Markdown; one line for each scenario."""
    return "\n".join([_HEAD, *map(_line, results)])


def _line(result: Result) -> str:
    cells = (
        result.name,
        str(len(result.gaps_s)),
        result.promise,
        "a repaint" if result.repaints else str(result.output_lost),
        str(result.input_lost),
        str(result.sessions_ended),
        *([f"{each:.2f} s" for each in percentiles(result.gaps_s, 50, 95)] or ["-", "-"]),
        "no" if result.failure else "yes",
    )
    return f"| {' | '.join(cells)} |"
