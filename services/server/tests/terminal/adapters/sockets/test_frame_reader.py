"""The reader, with its input split at every place."""

import random

import pytest
from websockets.frames import Frame
from websockets.protocol import CLIENT, Protocol

from bothy_server.terminal.adapters.sockets import frame_reader
from bothy_server.terminal.adapters.sockets.frame_reader import Broken, Closed, FrameReader, Ping, Text, Treatment
from bothy_server.terminal.adapters.sockets.websocket_frames import Opcode, unmask_in_python
from bothy_wire.close_codes import CloseCode

MAX = 1000
MAX_TEXT = 50


def reader(binary: Treatment = Treatment.PASS, text: Treatment = Treatment.REFUSE) -> FrameReader:
    made = FrameReader(MAX, MAX_TEXT)
    made.treat(binary, text)
    return made


def masked(opcode: Opcode, payload: bytes = b"", *, fin: bool = True) -> bytes:
    return Frame(opcode, payload, fin).serialize(mask=True)


def plain(opcode: Opcode, payload: bytes = b"", *, fin: bool = True) -> bytes:
    return Frame(opcode, payload, fin).serialize(mask=False)


def feed_in_pieces(made: FrameReader, data: bytes, sizes) -> tuple[bytes, list]:
    passed, events, at = b"", [], 0
    for size in sizes:
        out: list[bytes] = []
        events += made.feed(data[at : at + size], out)
        passed += b"".join(out)
        at += size
    return passed, events


STREAM = [
    (Opcode.BINARY, b"", True),
    (Opcode.BINARY, b"a", True),
    (Opcode.PING, b"one", True),
    (Opcode.BINARY, bytes(range(125)), True),
    (Opcode.BINARY, bytes(126), False),
    (Opcode.PING, b"two", True),
    (Opcode.CONTINUATION, b"", False),
    (Opcode.CONTINUATION, b"end", True),
    (Opcode.PONG, b"unasked", True),
    (Opcode.BINARY, b"x" * 800, True),
    (Opcode.CLOSE, b"\x03\xe8bye", True),
]
WIRE = b"".join(masked(opcode, payload, fin=fin) for opcode, payload, fin in STREAM)
PASSED = b"".join(plain(opcode, payload, fin=fin) for opcode, payload, fin in STREAM if opcode < 8)
EVENTS = [Ping(b"one"), Ping(b"two"), Closed(1000, b"\x03\xe8bye")]


@pytest.mark.parametrize("in_python", [False, True])
def test_a_stream_split_once_anywhere(in_python, monkeypatch):
    if in_python:
        monkeypatch.setattr(frame_reader, "unmask", unmask_in_python)
    for first in range(len(WIRE) + 1):
        made = reader()
        assert feed_in_pieces(made, WIRE, (first, len(WIRE))) == (PASSED, EVENTS), first
        assert made.passed_frames == sum(opcode < 8 for opcode, _, _ in STREAM), first
        assert made.passed_bytes == sum(len(payload) for opcode, payload, _ in STREAM if opcode < 8), first


@pytest.mark.parametrize("size", [1, 2, 3, 5, 13, 14, 127])
def test_a_stream_in_small_pieces(size):
    assert feed_in_pieces(reader(), WIRE, [size] * (len(WIRE) // size + 1)) == (PASSED, EVENTS)


def test_a_length_in_a_long_form_passes_in_the_short_one():
    long_form = b"\x82\xff" + (3).to_bytes(8, "big") + bytes(4) + b"abc"
    assert feed_in_pieces(reader(), long_form, [len(long_form)]) == (b"\x82\x03abc", [])


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_binary_is_dropped_and_one_text_is_kept(size):
    made = reader(Treatment.DROP, Treatment.KEEP)
    data = (
        masked(Opcode.BINARY, b"old", fin=False)
        + masked(Opcode.CONTINUATION, b"er")
        + masked(Opcode.TEXT, b"re", fin=False)
        + masked(Opcode.PING, b"?")
        + masked(Opcode.CONTINUATION, b"ady")
    )
    assert feed_in_pieces(made, data, [size] * (len(data) // size + 1)) == (b"", [Ping(b"?"), Text(b"ready")])
    assert made.passed_bytes == made.passed_frames == 0
    (broken,) = made.feed(masked(Opcode.TEXT, b"again"), [])
    assert broken.code == CloseCode.PROTOCOL_VIOLATION


VIOLATION, TOO_LARGE = CloseCode.PROTOCOL_VIOLATION, CloseCode.TOO_LARGE


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(b"\xc2\x80", VIOLATION, id="RSV1"),
        pytest.param(b"\xa2\x80", VIOLATION, id="RSV2"),
        pytest.param(b"\x92\x80", VIOLATION, id="RSV3"),
        pytest.param(b"\x82\x05", VIOLATION, id="not masked, two bytes in hand"),
        pytest.param(b"\x81\x85", VIOLATION, id="text, two bytes in hand"),
        pytest.param(b"\x83\x80", VIOLATION, id="opcode 3"),
        pytest.param(b"\x87\x80", VIOLATION, id="opcode 7"),
        pytest.param(b"\x8b\x80", VIOLATION, id="opcode 11"),
        pytest.param(b"\x8f\x80", VIOLATION, id="opcode 15"),
        pytest.param(b"\x09\x80", VIOLATION, id="fragmented ping"),
        pytest.param(b"\x89\xfe", VIOLATION, id="long ping"),
        pytest.param(b"\x80\x80", VIOLATION, id="continuation of nothing"),
        pytest.param(masked(Opcode.BINARY, b"a", fin=False) + b"\x82\x80", VIOLATION, id="message in a message"),
        pytest.param(masked(Opcode.BINARY, b"a") + b"\x00\x80", VIOLATION, id="continuation after the end"),
        pytest.param(bytes.fromhex("82ff8000000000000000"), VIOLATION, id="top bit of the length"),
        pytest.param(bytes.fromhex("82ff0000010000000000"), TOO_LARGE, id="2^40 bytes"),
        pytest.param(bytes.fromhex("82fe03e9"), TOO_LARGE, id="one byte more"),
        pytest.param(masked(Opcode.BINARY, bytes(MAX), fin=False) + b"\x80\x81abcd", TOO_LARGE, id="in a fragment"),
        pytest.param(masked(Opcode.CLOSE, b"\x03"), VIOLATION, id="half a close code"),
        pytest.param(masked(Opcode.CLOSE, b"\x03\xed"), VIOLATION, id="close code 1005"),
        pytest.param(masked(Opcode.CLOSE, b"\x03\xe8\xc3"), VIOLATION, id="reason that is not UTF-8"),
    ],
)
def test_violations_end_reading(data, code):
    for sizes in ((len(data),), (1,) * len(data)):
        made = reader()
        _, events = feed_in_pieces(made, data, sizes)
        assert [type(event) for event in events] == [Broken]
        assert events[0].code is code
        out: list[bytes] = []
        assert not made.feed(masked(Opcode.BINARY, b"late"), out)
        assert not out


def test_the_message_before_a_violation_passes():
    out: list[bytes] = []
    (event,) = reader().feed(masked(Opcode.BINARY, b"good") + b"\x82\x00", out)
    assert isinstance(event, Broken)
    assert b"".join(out) == plain(Opcode.BINARY, b"good")


@pytest.mark.parametrize(
    ("binary", "text", "data", "code"),
    [
        (Treatment.REFUSE, Treatment.REFUSE, b"\x82\x80", VIOLATION),
        (Treatment.REFUSE, Treatment.REFUSE, b"\x81\x80", VIOLATION),
        (Treatment.DROP, Treatment.KEEP, b"\x81\xfe\x00\x7f", TOO_LARGE),
        (Treatment.DROP, Treatment.KEEP, masked(Opcode.TEXT, bytes(MAX_TEXT), fin=False) + b"\x80\x81abcd", TOO_LARGE),
        (Treatment.DROP, Treatment.REFUSE, b"\x81\x80", VIOLATION),
    ],
)
def test_what_a_treatment_refuses(binary, text, data, code):
    (event,) = reader(binary, text).feed(data, [])
    assert isinstance(event, Broken)
    assert event.code is code


def test_a_stream_that_is_cut_anywhere_is_completed():
    """What passed, filled up, is a whole number of messages to a strict reader, and the rest is dropped."""
    for cut in range(len(WIRE) - len(masked(*STREAM[-1][:2])) + 1):
        made = reader()
        passed, _ = feed_in_pieces(made, WIRE, (cut,))
        mid_message = made.mid_message
        filling = made.cut()
        assert bool(filling) == mid_message, cut
        assert not made.cut(), cut
        assert not made.mid_message, cut

        strict = Protocol(CLIENT)
        strict.receive_data(passed + filling + plain(Opcode.TEXT, b"unpaired"))
        assert strict.parser_exc is None, cut
        assert strict.events_received()[-1].data == b"unpaired", cut

        made.treat(Treatment.DROP, Treatment.KEEP)
        out: list[bytes] = []
        assert made.feed(WIRE[cut:], out)[-1] == EVENTS[-1], cut
        assert not out, cut


def test_a_cut_message_does_not_pass_on_in_the_next_pairing():
    made = reader()
    out: list[bytes] = []
    made.feed(masked(Opcode.BINARY, b"old", fin=False), out)
    made.cut()
    made.treat(Treatment.PASS, Treatment.REFUSE)
    out.clear()
    made.feed(masked(Opcode.CONTINUATION, b"old") + masked(Opcode.BINARY, b"new"), out)
    assert b"".join(out) == plain(Opcode.BINARY, b"new")


def test_own_frames_may_stand_at_the_borders_that_are_told():
    """Feed random pieces; put a frame at each border that is told; a strict reader must agree."""
    chance = random.Random(7)
    for _ in range(200):
        made, strict, at = reader(), Protocol(CLIENT), 0
        while at < len(WIRE):
            size = chance.randint(1, 200)
            out: list[bytes] = []
            made.feed(WIRE[at : at + size], out)
            at += size
            frames, messages = made.frame_border(out), made.message_border(out)
            if frames is not None:
                out[frames:frames] = [plain(Opcode.PING)]
            if messages is not None:
                out[messages:messages] = [plain(Opcode.TEXT, b"t")]
            strict.receive_data(b"".join(out))
            assert strict.parser_exc is None
        whole = [
            frame.data for frame in strict.events_received() if frame.opcode in {Opcode.BINARY, Opcode.CONTINUATION}
        ]
        assert b"".join(whole) == b"".join(payload for opcode, payload, _ in STREAM if opcode < 8)
