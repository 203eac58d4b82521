"""The list of decisions in ``docs/adr/README.md``, made from the decisions themselves.

``python tools/adr_index.py`` writes it, ``--check`` fails when it is stale.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

FOLDER = Path("docs/adr")
_NAME = re.compile(r"(\d{4})-[a-z0-9-]+\.md")
_TITLE = re.compile(r"# (\d+)\. (.+)")
_STATUS = re.compile(r"Date: \d{4}-\d{2}-\d{2}\. Status: (accepted|superseded by \d+)\.")
_HEAD = """\
# Decisions

Why things are as they are. One decision a file, never rewritten: a new one supersedes it. Start from `template.md`;
`make adr` writes this list.

| no | decision | status |
| --- | --- | --- |
"""


class DecisionError(ValueError):
    """A decision that does not follow the template."""


def index(folder: Path) -> str:
    """The text of the list. Raises :class:`DecisionError`."""
    return _HEAD + "".join(_row(path) for path in sorted(folder.glob("[0-9]*.md")))


def _row(path: Path) -> str:
    name, lines = _NAME.fullmatch(path.name), path.read_text().splitlines()
    title = _TITLE.fullmatch(lines[0]) if lines else None
    status = next(filter(None, map(_STATUS.fullmatch, lines)), None)
    if name is None or title is None or status is None or int(name[1]) != int(title[1]):
        raise DecisionError(f"{path}: name, first line and status do not follow {FOLDER / 'template.md'}")
    return f"| [{name[1]}]({path.name}) | {title[2]} | {status[1]} |\n"


def main() -> int:
    """The exit status: 1 when ``--check`` finds a stale list."""
    readme, text = FOLDER / "README.md", index(FOLDER)
    if "--check" not in sys.argv[1:]:
        readme.write_text(text)
    elif not readme.exists() or readme.read_text() != text:
        print(f"{readme} is stale: run make adr")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
