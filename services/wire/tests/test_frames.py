"""Every frame class round-trips, and everything else is a FrameError."""

from __future__ import annotations

import json
import random
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothy_wire import frames
from bothy_wire.errors import FrameError
from bothy_wire.frames import Decoder, Frame, encode

A, B, C = (UUID(f"01890a5d-ac9{n}-774b-bcce-b302099a805{n}") for n in range(3))
BYTES32, BYTES64 = bytes(range(32)), bytes(range(64))
JWKS = {"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "1", "x": "AA"}]}
EXAMPLES: list[Frame] = [
    frames.HostHello(
        challenge=BYTES32,
        jwks=JWKS,
        heartbeat_interval_s=10,
        miss_limit=3,
        server_time=1.5,
        protocol_min=1,
        protocol_max=1,
    ),
    frames.HostIdentify(host_id=A, boot_id=B, version=1, join="j1", signature=BYTES64),
    frames.HostIdentified(
        conn_id=A,
        pairing_seq=1,
        join_offered="j2",
        limits=frames.HostLimits(idle_timeout_s=1, idle_grace_s=2, detach_grace_s=3, max_duration_s=4),
    ),
    frames.HostPending(),
    frames.HostHeartbeatAck(server_time=2.25),
    frames.HostSessionOpen(
        session_id=A, data_path="/api/v1/x", profile="shell", session_user="alex-shell", expires_at=3.5
    ),
    frames.HostSessionClose(session_id=A, reason="idle"),
    frames.HostSessionRecorded(session_id=A, state="active"),
    frames.HostKeys(jwks=JWKS),
    frames.HostReport(
        join="j1",
        profiles={"shell": ["alex-shell", "@staff"]},
        require_local_confirm=False,
        sessions=[
            frames.ReportedSession(session_id=A, phase="running", attached=True),
            frames.ReportedSession(session_id=B, phase="dialling", attached=False),
        ],
        os="linux",
        arch="x86_64",
    ),
    frames.HostHeartbeat(),
    frames.HostSessionStarted(session_id=A),
    frames.HostSessionEnded(session_id=A, reason="process_exited", exit_status=0),
    frames.HostSessionEnded(session_id=A, reason="spawn_failed"),
    frames.DataHello(challenge=BYTES32),
    frames.DataIdentify(host_id=A, session_id=B, signature=BYTES64),
    frames.StreamHello(challenge=BYTES32),
    frames.StreamIdentify(stream_token="header.claims.signature", signature=BYTES64),
    frames.SideAccepted(),
    frames.SidePaired(session_token="header.claims.signature"),
    frames.SidePaired(),
    frames.SideUnpaired(),
    frames.SideReady(),
]
CLASSES = tuple(Frame.__subclasses__())
ANY = Decoder(*CLASSES)
each_example = pytest.mark.parametrize("frame", EXAMPLES, ids=lambda frame: type(frame).__struct_config__.tag)


def refused(decoder: Decoder, text: str | bytes) -> None:
    with pytest.raises(FrameError) as caught:
        decoder.decode(text)
    assert caught.value.code == 4105


def fields_of(frame: Frame) -> dict:
    return json.loads(encode(frame))


def test_there_is_an_example_of_every_frame():
    assert {type(frame) for frame in EXAMPLES} == set(CLASSES)


@each_example
def test_round_trip(frame):
    text = encode(frame)
    assert ANY.decode(text) == frame
    assert Decoder(type(frame)).decode(text.encode()) == frame


@each_example
def test_an_unknown_field_is_refused(frame):
    refused(ANY, json.dumps(fields_of(frame) | {"extra": 1}))


@each_example
def test_a_missing_field_is_refused(frame):
    fields = fields_of(frame)
    for name in fields.keys() - {"session_token", "exit_status"}:
        refused(ANY, json.dumps({key: value for key, value in fields.items() if key != name}))


@each_example
def test_a_wrong_type_is_refused(frame):
    fields = fields_of(frame)
    for name, value in fields.items():
        for wrong in ("\ud800", {"a": [None]}, 0 if isinstance(value, list) else []):
            if name != "jwks" or not isinstance(wrong, dict):
                refused(ANY, json.dumps(fields | {name: wrong}))


@each_example
def test_what_is_not_expected_here_is_refused(frame):
    others = [each for each in CLASSES if each is not type(frame)]
    refused(Decoder(*others), encode(frame))


@each_example
def test_what_surrounds_a_frame_is_refused(frame):
    text = encode(frame)
    for wrong in (text + "{}", text + "x", text[:-1], "[" + text + "]", text + "\0", "\ufeff" + text):
        refused(ANY, wrong)


@each_example
def test_a_name_that_stands_twice_is_refused(frame):
    fields = fields_of(frame)
    for name, value in fields.items():
        refused(ANY, encode(frame)[:-1] + f",{json.dumps(name)}:{json.dumps(value)}}}")


def test_two_types_are_refused():
    refused(ANY, '{"type":"side.ready","type":"side.accepted"}')
    refused(ANY, '{"type":"side.ready","type":"side.ready"}')


def test_a_name_that_stands_twice_deep_inside_is_refused():
    refused(ANY, '{"type":"host.keys","jwks":{"keys":[{"kid":"1","kid":"2"}]}}')


@pytest.mark.parametrize(
    "spelling",
    [
        str(A).upper(),
        A.hex,
        "{" + str(A) + "}",
        "urn:uuid:" + str(A),
        str(A) + " ",
        str(A)[:-1],
        str(A)[:-1] + "\u0663",
    ],
)
def test_an_id_that_is_not_canonical_is_refused(spelling):
    started = fields_of(frames.HostSessionStarted(session_id=A))
    refused(ANY, json.dumps(started | {"session_id": spelling}))
    identify = fields_of(frames.HostIdentify(host_id=A, boot_id=B, version=1, join="j", signature=BYTES64))
    # The canonical form elsewhere in the frame makes it no better.
    refused(ANY, json.dumps(identify | {"host_id": spelling, "join": str(A)}))
    refused(ANY, json.dumps(identify | {"host_id": spelling, "boot_id": str(A)}))
    report = fields_of(EXAMPLES[9])
    report["sessions"][1]["session_id"] = spelling
    refused(ANY, json.dumps(report))


@pytest.mark.parametrize(
    ("frame", "change"),
    [
        (EXAMPLES[0], {"challenge": "AAAA"}),
        (EXAMPLES[0], {"miss_limit": 0}),
        (EXAMPLES[0], {"heartbeat_interval_s": -1}),
        (EXAMPLES[0], {"protocol_min": 0}),
        (EXAMPLES[1], {"signature": "AAAA"}),
        (EXAMPLES[1], {"join": "j" * 257}),
        (EXAMPLES[5], {"data_path": "/" * 129}),
        (EXAMPLES[5], {"profile": ""}),
        (EXAMPLES[6], {"reason": "no reason"}),
        (EXAMPLES[9], {"os": "x" * 65}),
        (EXAMPLES[9], {"profiles": {f"p{n}": [] for n in range(65)}}),
        (EXAMPLES[12], {"exit_status": 256}),
        (EXAMPLES[17], {"stream_token": "t" * 4097}),
    ],
)
def test_a_value_out_of_its_bounds_is_refused(frame, change):
    refused(ANY, json.dumps(fields_of(frame) | change))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_time_is_a_finite_number(number):
    refused(ANY, f'{{"type":"host.heartbeat_ack","server_time":{number}}}')


@pytest.mark.parametrize("depth", [100, 100_000])
def test_deep_nesting_is_refused(depth):
    refused(ANY, "[" * depth)
    refused(ANY, '{"type":' * depth)
    refused(ANY, '{"type":"side.ready","a":' + "[" * depth + "]" * depth + "}")
    refused(Decoder(frames.SideReady), '{"a":' * depth + "1" + "}" * depth)


def test_nesting_in_free_form_has_an_end():
    refused(ANY, '{"type":"host.keys","jwks":{"keys":' + "[" * 100_000 + "]" * 100_000 + "}}")


def test_an_error_quotes_nothing():
    with pytest.raises(FrameError) as caught:
        ANY.decode('{"type":"host.pending","secret":"hunter2"}')
    assert "hunter2" not in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "raw", [b"", b"\xff\xfe", b'{"type":"side.ready\xff"}', b"\x00", b"null", b"1", b'"side.ready"']
)
def test_what_is_no_object_is_refused(raw):
    refused(ANY, raw)


@given(st.binary(max_size=300))
def test_random_bytes_are_refused(raw):
    refused(ANY, raw)


@given(st.sampled_from(EXAMPLES), st.randoms(use_true_random=False), st.integers(1, 4))
def test_a_mutated_frame_is_a_frame_or_refused(frame, chance: random.Random, times):
    raw = bytearray(encode(frame).encode())
    for _ in range(times):
        at = chance.randrange(len(raw) + 1)
        match chance.choice(["change", "insert", "remove", "double"]):
            case "change" if at < len(raw):
                raw[at] ^= 1 << chance.randrange(8)
            case "insert":
                raw.insert(at, chance.randrange(256))
            case "double":
                raw[at:at] = raw[at : at + 20]
            case _:
                del raw[at : at + 3]
    try:
        decoded = ANY.decode(bytes(raw))
    except FrameError:
        return
    assert ANY.decode(encode(decoded)) == decoded


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "jwks", "a"]), inner),
        max_leaves=8,
    )
)
def test_any_other_json_is_refused(value):
    refused(Decoder(frames.HostIdentify, frames.HostReport), json.dumps(value))


def test_frames_are_immutable():
    with pytest.raises(AttributeError):
        frames.SidePaired().session_token = "x"
    assert msgspec.structs.replace(frames.SidePaired(), session_token="x").session_token == "x"


@pytest.mark.parametrize("text", ["{}", '{"type":"nothing"}', '{"type":""}', '{"type":null}'])
def test_a_frame_names_its_type_also_where_only_one_is_expected(text):
    with pytest.raises(FrameError):
        Decoder(frames.SideReady).decode(text)
