from __future__ import annotations

import json

import audit

SOUND = {"name": "click", "version": "8.5", "vulns": []}
WEAK = {"name": "rich", "version": "1.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"]}]}
UNKNOWN = {"name": "bothy", "skip_reason": "not found"}


def verdict(*dependencies: dict, strict: bool = False) -> tuple[int, str]:
    return audit.verdict(0, json.dumps({"dependencies": dependencies}), "", strict=strict)


def test_audit_passes_what_is_sound() -> None:
    assert verdict(SOUND, strict=True) == (0, "1 dependencies audited, 0 weaknesses")


def test_audit_fails_for_a_known_weakness() -> None:
    status, words = verdict(SOUND, WEAK)
    assert status == 1
    assert "rich 1.0: PYSEC-1, fixed in 1.1" in words


def test_audit_says_what_nobody_knows() -> None:
    assert verdict(UNKNOWN)[0] == 0
    assert "NOT AUDITED: 1 of 2" in verdict(SOUND, UNKNOWN)[1]
    assert verdict(SOUND, UNKNOWN, strict=True)[0] == 1


def test_audit_says_that_nobody_answered() -> None:
    status, words = audit.verdict(1, "", "Traceback\nConnectionError: away\n", strict=False)
    assert (status, words) == (0, "NOT AUDITED: the advisory service did not answer (ConnectionError: away)")
    assert audit.verdict(1, "", "", strict=True)[0] == 1
