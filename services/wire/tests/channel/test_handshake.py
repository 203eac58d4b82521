"""The payloads of the handshake, and the shared transcript of a whole channel."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import UUID

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from bothy_wire.channel import records
from bothy_wire.channel.handshake import (
    Accepted,
    Message1,
    Refused,
    decode_message1,
    decode_message2,
    encode_payload,
    prologue,
)
from bothy_wire.channel.noise import Initiator, Responder
from bothy_wire.errors import ChannelError

TRANSCRIPT = json.loads((Path(__file__).parents[4] / "docs/spec/vectors/noise_ik.json").read_text())["channel"]
MESSAGE1 = Message1(
    token="a.b.c",
    profile="shell",
    session_user="alex-shell",
    columns=80,
    rows=24,
    term="xterm",
    lineage=bytes(16),
    output_processed=5,
    input_sent=6,
)
ACCEPTED = Accepted(resume="exact", lineage=bytes(16), output_position=5, input_received=6)


def test_the_prologue_separates_sessions_and_hosts():
    session, host = UUID(TRANSCRIPT["session_id"]), UUID(TRANSCRIPT["host_id"])
    assert prologue(session, host).hex() == TRANSCRIPT["prologue"]
    assert prologue(host, session) != prologue(session, host)


def test_the_shared_transcript():
    def private(name: str) -> X25519PrivateKey:
        return X25519PrivateKey.from_private_bytes(bytes.fromhex(TRANSCRIPT[name]))

    bound = bytes.fromhex(TRANSCRIPT["prologue"])
    host = private("host_static")
    initiator = Initiator(
        private("device_static"), host.public_key().public_bytes_raw(), bound, ephemeral=private("device_ephemeral")
    )
    responder = Responder(host, bound, ephemeral=private("host_ephemeral"))
    message1 = initiator.write(TRANSCRIPT["message1_payload"].encode())
    assert message1.hex() == TRANSCRIPT["message1"]
    asked = decode_message1(responder.read(message1))
    assert encode_payload(asked).decode() == TRANSCRIPT["message1_payload"]
    message2 = responder.write(TRANSCRIPT["message2_payload"].encode())
    assert message2.hex() == TRANSCRIPT["message2"]
    answer = decode_message2(initiator.read(message2))
    assert encode_payload(answer).decode() == TRANSCRIPT["message2_payload"]
    every = TRANSCRIPT["rekey_records"]
    device_send, device_receive = (
        each(c, every) for each, c in zip((records.Sealer, records.Opener), initiator.split(), strict=True)
    )
    host_send, host_receive = (
        each(c, every) for each, c in zip((records.Sealer, records.Opener), responder.split(), strict=True)
    )
    counts = {"device": 0, "host": 0}
    for step in TRANSCRIPT["records"]:
        counts[step["from"]] += 1
        send, receive = (device_send, host_receive) if step["from"] == "device" else (host_send, device_receive)
        record = records.decode_record(bytes.fromhex(step["record"]))
        assert send.seal(record).hex() == step["message"]
        assert receive.open(bytes.fromhex(step["message"])) == record
    assert all(count > every for count in counts.values()), "the transcript goes over a REKEY in both directions"


@pytest.mark.parametrize("answer", [ACCEPTED, Refused(code="token_expired")])
def test_answers_round_trip(answer):
    assert decode_message2(encode_payload(answer)) == answer


@pytest.mark.parametrize("size", [(0, 0), (-1, 5), (10**6, 10**30)])
def test_message1_admits_any_size(size):
    raw = msgspec.json.encode(msgspec.to_builtins(MESSAGE1) | {"columns": size[0], "rows": size[1]})
    asked = decode_message1(raw)
    assert (asked.columns, asked.rows) == size


@pytest.mark.parametrize("missing", Message1.__struct_fields__)
def test_message1_misses_no_field(missing):
    fields = msgspec.to_builtins(MESSAGE1)
    del fields[missing]
    with pytest.raises(ChannelError):
        decode_message1(msgspec.json.encode(fields))


@pytest.mark.parametrize(
    "change",
    [
        {"extra": 1},
        {"token": ""},
        {"token": "x" * 4097},
        {"profile": "p" * 65},
        {"session_user": ""},
        {"columns": 80.5},
        {"rows": "24"},
        {"term": ""},
        {"term": "t" * 65},
        {"lineage": "AAAA"},
        {"output_processed": -1},
        {"input_sent": 2**63},
    ],
)
def test_message1_is_strict(change):
    with pytest.raises(ChannelError):
        decode_message1(msgspec.json.encode(msgspec.to_builtins(MESSAGE1) | change))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"null",
        b"[" * 10_000,
        b'{"type":"refused","code":"no"}',
        b'{"type":"refused"}',
        b'{"type":"accepted"}',
        b'{"type":"other"}',
        b'{"code":"token_expired"}',
        b'{"type":"refused","code":"token_expired","more":1}',
        b'{"type":"refused","code":"\xff"}',
        encode_payload(ACCEPTED) + b"{}",
    ],
)
def test_message2_is_strict(raw):
    with pytest.raises(ChannelError):
        decode_message2(raw)


@given(st.binary(max_size=200))
def test_random_payloads_are_refused_as_such(raw):
    for decode in (decode_message1, decode_message2):
        with pytest.raises(ChannelError):
            decode(raw)
