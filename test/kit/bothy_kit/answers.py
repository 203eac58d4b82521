"""What REST operations answer while tests run: no refusal may be undeclared, and none may go untested.

The server tells of each answer in its log. A refusal that its operation does not declare fails the test in which it
happened. Everything else is written down, with the test that saw it first, for ``tools/answers.py``.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

_LOGGER = "bothy_server.platform.rest_api"


class Answers(logging.Filter):
    """Hears the log of the REST interface. ``undeclared`` holds what the running test has to answer for."""

    def __init__(self) -> None:
        super().__init__()
        self.undeclared: list[str] = []
        self._seen: dict[tuple[str, int, str], str] = {}

    def listen(self) -> None:
        """From now on, for the whole process."""
        logger = logging.getLogger(_LOGGER)
        logger.setLevel(logging.DEBUG)
        logger.addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep the answers to ourselves: no test looks for them in a log."""
        fields: dict[str, Any] = record.__dict__
        match record.getMessage():
            case "answered":
                key = (fields["bothy.operation"], fields["bothy.status"], fields["bothy.problem"] or "-")
                self._seen.setdefault(key, os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0])
                return False
            case "undeclared refusal":
                self.undeclared.append(f"{fields['bothy.operation']} refused with {fields['bothy.problem']}")
        return True

    def write(self, file: Path) -> None:
        """A line for each kind of answer: operation, status, code or ``-``, test."""
        lines = (f"{name} {status} {code} {test}" for (name, status, code), test in sorted(self._seen.items()))
        file.write_text("".join(f"{line}\n" for line in lines))
