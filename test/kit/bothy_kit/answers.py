"""What REST operations answer and what is audited while tests run: nothing may be undeclared, and nothing may go untested.

The server tells of both in its log. A refusal that its operation does not declare fails the test in which it happened.
Everything else is written down, with the test that saw it first, for ``tools/answers.py``.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

FUZZER = "test_api_fuzz.py::"
"""What only this one came to does not count: nobody said what it should be."""

_LOGGERS = ("bothy_server.platform.rest_api", "bothy_server.platform.unit_of_work")


class Answers(logging.Filter):
    """Hears what the server tells of itself. ``undeclared`` holds what the running test has to answer for."""

    def __init__(self) -> None:
        super().__init__()
        self.undeclared: list[str] = []
        self._seen: dict[str, str] = {}

    def listen(self) -> None:
        """From now on, for the whole process."""
        for name in _LOGGERS:
            logger = logging.getLogger(name)
            logger.setLevel(logging.DEBUG)
            logger.addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep to ourselves what no test looks for in a log."""
        fields: dict[str, Any] = record.__dict__
        match record.getMessage():
            case "answered":
                code = fields["bothy.problem"]
                words = (fields["bothy.operation"], str(fields["bothy.status"]), *(() if code is None else (code,)))
            case "audited":
                words = ("audit", fields["bothy.audit.action"], fields["bothy.audit.code"])
            case "undeclared refusal":
                self.undeclared.append(f"{fields['bothy.operation']} refused with {fields['bothy.problem']}")
                return True
            case _:
                return True
        self._note(" ".join(words), os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0])
        return False

    def _note(self, words: str, test: str) -> None:
        if FUZZER in self._seen.setdefault(words, test):  # a test that says what it expects counts for more
            self._seen[words] = test

    def write(self, file: Path) -> None:
        """A line for each kind: operation, status and code, or ``audit``, action and code; behind a tab the test."""
        file.write_text("".join(f"{words}\t{test}\n" for words, test in sorted(self._seen.items())))
