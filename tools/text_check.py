"""Refuse text that does not belong into the tree: ``python tools/text_check.py`` looks at every tracked text file.

Long dashes, paths of one machine, notes about work left undone, and addresses in the lock file.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

RULES = {
    "a long dash; write a hyphen": re.compile("[\u2012-\u2015]"),
    "a path of one machine": re.compile(
        r"(?<![\w.~}-])/(?:root|work|Users)/|(?<![\w.~}-])/home/(?!alex\b|sam\b|robin\b)\w"
    ),
    "work left undone": re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b"),
}
LOCK_RULES = {"an address of an index": re.compile(r"https?://|file:|--(?:extra-)?index-url|--find-links")}
NPM_LOCK_RULES = {"an address of a registry": re.compile('"resolved"')}


def faults(name: str, text: str) -> Iterator[str]:
    """One line for each fault, as ``name:line: words``."""
    rules = RULES | _rules_of_locks(name)
    for number, line in enumerate(text.splitlines(), 1):
        for words, pattern in rules.items():
            if pattern.search(line):
                yield f"{name}:{number}: {words}"


def _rules_of_locks(name: str) -> dict[str, re.Pattern[str]]:
    if name.endswith("package-lock.json"):
        return NPM_LOCK_RULES
    return LOCK_RULES if name.endswith(".lock") else {}


def main() -> int:
    """The exit status: 1 when something was found."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], check=True, capture_output=True
    )
    found: list[str] = []
    for name in listed.stdout.decode().split("\0"):
        path = Path(name)
        if not path.is_file() or path.resolve() == Path(__file__).resolve():
            continue
        data = path.read_bytes()
        if b"\0" not in data:
            found += faults(name, data.decode(errors="replace"))
    print(*found, sep="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
