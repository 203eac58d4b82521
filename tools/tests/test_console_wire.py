"""The console's table of the wire is fresh, and holds every close code."""

from __future__ import annotations

import json
from pathlib import Path

import console_wire
from bothy_wire.close_codes import CloseCode, retry_of, text_of

WRITTEN = (Path(__file__).parents[2] / console_wire.PAGE).read_text()


def test_it_is_fresh():
    assert console_wire.document() == WRITTEN, "run make api"


def test_every_close_code_has_its_row():
    rows = json.loads(WRITTEN)["close_codes"]
    assert {int(code) for code in rows} == set(CloseCode)
    for code in CloseCode:
        assert rows[str(int(code))]["stream"] == retry_of(code, "stream")
        assert rows[str(int(code))]["text"] == text_of(code)
