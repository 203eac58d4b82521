"""Findings as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

from bothy_server.doctor.finding import CHECKS, Finding, Verdict


def table(findings: Sequence[Finding]) -> str:
    """One line for each finding, and the fix below each that failed. What others said is shown without control characters."""
    return "\n".join(
        f"{each.verdict.value:<7}{each.check:<17}{_shown(each.seen)}"
        + (f"\n{'':<7}fix: {CHECKS[each.check].fix}" if each.verdict is Verdict.FAILED else "")
        for each in findings
    )


def as_json(findings: Sequence[Finding]) -> str:
    """``{"ok": ..., "checks": [{"check", "verdict", "seen", "fix"}]}``; ``fix`` is null where nothing failed."""
    checks = [
        {
            "check": each.check,
            "verdict": each.verdict.value,
            "seen": each.seen,
            "fix": CHECKS[each.check].fix if each.verdict is Verdict.FAILED else None,
        }
        for each in findings
    ]
    return json.dumps({"ok": passed(findings), "checks": checks})


def passed(findings: Sequence[Finding]) -> bool:
    """Nothing failed. What could not be seen did not."""
    return all(each.verdict is not Verdict.FAILED for each in findings)


def _shown(seen: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in seen)
