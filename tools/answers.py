"""Whether the tests saw every answer that a REST operation declares: ``python tools/answers.py FILE...``.

The files are written by runs of the tests with ``BOTHY_ANSWERS`` (``test/kit``). An answer that only the fuzzer came to does
not count: nobody said what it should be.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from bothy_server.platform.operations import Operation, operations_of
from openapi import adapters

Answer = tuple[str, int, str]
"""Operation, status, code; of a success the code is ``-``."""

_FUZZER = "test_api_fuzz.py::"


def declared(rows: Iterable[Operation]) -> set[Answer]:
    """What the table promises."""
    found = set()
    for row in rows:
        found.add((row.name, row.status, "-"))
        found |= {(row.name, status, code) for status, codes in row.all_refusals().items() for code in codes}
    return found


def seen(text: str) -> set[Answer]:
    """What a run saw."""
    words = (line.split(" ", 3) for line in text.splitlines())
    return {(name, int(status), code) for name, status, code, test in words if _FUZZER not in test}


def main(files: Iterable[str]) -> int:
    """The exit status: 1 when an answer was never seen, or a run is missing."""
    paths = [Path(each) for each in files]
    if missing := [str(path) for path in paths if not path.exists()]:
        print(f"{', '.join(missing)}: not there; run make unit multinode")
        return 1
    rows = [row for kind in adapters() for row, _ in operations_of(kind)]
    wanted = declared(rows)
    never = sorted(wanted - set().union(*(seen(path.read_text()) for path in paths)))
    for name, status, code in never:
        print(f"{name}: no test sees {status} {code}")
    print(f"{len(wanted) - len(never)} of {len(wanted)} answers of {len(rows)} operations are seen by tests")
    return 1 if never else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
