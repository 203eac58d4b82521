"""The shared conversations: both ends still say every byte of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import channel_recording
import channel_vectors
from bothy_wire.channel.noise import CipherState
from bothy_wire.channel.records import Data, Opener, Sealer
from bothy_wire.limits import REKEY_RECORDS

PAGE = Path(__file__).parents[4] / channel_vectors.PAGE
VECTORS = json.loads(PAGE.read_text())


@pytest.mark.parametrize("recorded", VECTORS["conversations"], ids=lambda recorded: recorded["name"])
def test_every_conversation_goes_as_recorded(recorded):
    assert channel_recording.played(recorded) == recorded


def test_the_scenes_still_make_this_file():
    assert channel_vectors.document() == PAGE.read_text(), (
        "run python tools/channel_vectors.py and look at what changed"
    )


def test_the_file_shows_every_event_and_every_failure_is_the_channels():
    steps = [step for conversation in VECTORS["conversations"] for step in conversation["steps"]]
    heard = {event["event"] for step in steps if step["do"] == "receive" for event in step.get("gives", [])}
    assert heard == {"Opened", "Refusal", "Output", "Repaint", "Exited", "Notice", "InputAcknowledged", "Pong"}
    assert {step["fails"] for step in steps if "fails" in step} == {4107}


def test_a_rekey():
    sealed, opened = (CipherState(bytes.fromhex(VECTORS["rekey"]["key"])) for _ in range(2))
    sealed.nonce = opened.nonce = VECTORS["rekey"]["first"]
    assert sealed.nonce < REKEY_RECORDS < sealed.nonce + len(VECTORS["rekey"]["frames"])
    sealer, opener = Sealer(sealed), Opener(opened)
    for number, frame in enumerate(VECTORS["rekey"]["frames"]):
        record = Data(bytes([number]))
        assert sealer.seal(record).hex() == frame
        assert opener.open(bytes.fromhex(frame)) == record
