"""Paths name the session in canonical form, and the sizes fit into one another."""

from __future__ import annotations

from uuid import UUID

from bothy_wire import limits

SESSION = UUID("01890a5d-ac96-774b-bcce-b302099a8057")


def test_paths():
    assert limits.data_path(SESSION) == f"/api/v1/hosts/sessions/{SESSION}/stream"
    assert limits.stream_path(SESSION) == f"/api/v1/terminal/sessions/{SESSION}/stream"


def test_a_sealed_record_fits_a_channel_message():
    assert limits.RECORD_BYTES + 16 <= limits.CHANNEL_MESSAGE_BYTES
