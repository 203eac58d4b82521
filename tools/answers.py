"""Whether tests saw every answer that a REST operation declares and every entry of the audit: ``python tools/answers.py FILE...``.

The files are written by runs of the tests with ``BOTHY_TEST_ANSWERS`` (``test/kit``). What only the fuzzer came to does not count:
nobody said what it should be.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from bothy_kit.answers import FUZZER
from bothy_server.platform.audit import AUDIT_ACTIONS
from bothy_server.platform.operations import Operation, operations_of
from openapi import adapters


def declared(rows: Iterable[Operation]) -> set[str]:
    """What the two tables promise, in the words of the files."""
    found = {f"audit {action} {code}" for action, codes in AUDIT_ACTIONS.items() for code in codes}
    for row in rows:
        found.add(f"{row.name} {row.status}")
        found |= {f"{row.name} {status} {code}" for status, codes in row.all_refusals().items() for code in codes}
    return found


def seen(text: str) -> set[str]:
    """What a run saw."""
    lines = (line.partition("\t") for line in text.splitlines())
    return {words for words, _, test in lines if FUZZER not in test}


def main(files: Iterable[str]) -> int:
    """The exit status: 1 when something was never seen, or a run is missing."""
    paths = [Path(each) for each in files]
    if missing := [str(path) for path in paths if not path.exists()]:
        print(f"{', '.join(missing)}: not there; run make unit multinode")
        return 1
    rows = [row for kind in adapters() for row, _ in operations_of(kind)]
    wanted = declared(rows)
    never = sorted(wanted - set().union(*(seen(path.read_text()) for path in paths)))
    for words in never:
        print(f"no test sees: {words}")
    print(f"{len(wanted) - len(never)} of {len(wanted)} answers and entries are seen by tests")
    return 1 if never else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
