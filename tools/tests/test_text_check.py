from __future__ import annotations

import pytest

import text_check


@pytest.mark.parametrize(
    "text",
    [
        "a \u2014 b",
        "1\u20132",
        "see /ro" + "ot/x",
        "cd /wo" + "rk/x",
        "'/ho" + "me/someone/x'",
        "/Us" + "ers/x",
        "# TO" + "DO: more",
        "FIX" + "ME",
    ],
)
def test_text_check_finds(text: str) -> None:
    assert [fault.split(": ")[0] for fault in text_check.faults("a.md", f"first\n{text}\n")] == ["a.md:2"]


@pytest.mark.parametrize(
    "text", ["a - b", "frame/work/x", "/home/alex/x", "https://example.com/root/", "{prefix}/work/"]
)
def test_text_check_passes(text: str) -> None:
    assert list(text_check.faults("a.md", text)) == []


def test_text_check_keeps_addresses_out_of_the_lock_file_only() -> None:
    line = "--index-url https://example.com/simple"
    assert list(text_check.faults("requirements.lock", line))
    assert list(text_check.faults("README.md", line)) == []
    resolved = '"resolved": "https://example.com/a.tgz",'
    assert list(text_check.faults("services/console/package-lock.json", resolved))
