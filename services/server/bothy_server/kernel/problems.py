"""A refusal that a caller may see: RFC 9457 with a stable code.

A use case raises it inside its unit of work, so that a refusal always rolls back: nothing is written, nothing is sent.
"""

from __future__ import annotations

import math


class Problem(Exception):  # noqa: N818 - RFC 9457 calls it a problem
    """``code`` is for programs and never changes; ``detail`` is for a person and says what to do."""

    def __init__(self, status: int, code: str, detail: str, *, retry_after_s: int | None = None) -> None:
        """``status`` is the HTTP status; ``retry_after_s`` becomes ``Retry-After``."""
        super().__init__(code)
        self.status = status
        self.code = code
        self.detail = detail
        self.retry_after_s = retry_after_s


def too_often(wait_s: float) -> Problem:
    """429 ``rate_limited``; the same may be tried again after ``wait_s`` seconds."""
    seconds = max(1, math.ceil(wait_s))
    return Problem(429, "rate_limited", f"That was too often. Try again in {seconds} s.", retry_after_s=seconds)
