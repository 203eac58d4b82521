import random

import pytest

from bothy_server.terminal.adapters.sockets import websocket_frames
from bothy_server.terminal.adapters.sockets.websocket_frames import (
    NO_STATUS,
    Opcode,
    close_code,
    close_payload,
    frame,
    header,
    unmask_in_python,
)


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (0, "8200"),
        (125, "827d"),
        (126, "827e007e"),
        (65535, "827effff"),
        (65536, "827f0000000000010000"),
    ],
)
def test_a_header_takes_the_shortest_form(length, expected):
    assert header(0x82, length).hex() == expected


def test_a_frame_is_final_and_unmasked():
    assert frame(Opcode.TEXT, b"hi") == b"\x81\x02hi"


@pytest.mark.parametrize("code", [1000, 1003, 1007, 1014, 3000, 4105, 4999])
def test_codes_that_may_be_sent(code):
    assert close_code(close_payload(code, "why")) == code


@pytest.mark.parametrize("code", [0, 999, 1004, 1005, 1006, 1015, 2999, 5000, 65535])
def test_codes_that_may_not_be_sent(code):
    with pytest.raises(ValueError):
        close_code(code.to_bytes(2, "big"))


def test_a_close_payload_is_empty_or_a_code_and_text():
    assert close_code(b"") == NO_STATUS
    for payload in (b"\x03", b"\x03\xe8\xff"):
        with pytest.raises(ValueError):
            close_code(payload)


def test_a_long_reason_is_cut_at_a_character():
    payload = close_payload(4100, "\u20ac" * 100)
    assert len(payload) <= 125
    assert set(payload[2:].decode()) == {"\u20ac"}


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 7, 8, 63, 64, 65, 4097])
def test_both_ways_to_unmask_agree_with_the_definition(size):
    chance = random.Random(size)
    data, mask = chance.randbytes(size), chance.randbytes(4)
    expected = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
    assert unmask_in_python(data, mask) == expected
    assert websocket_frames.unmask(data, mask) == expected


def test_the_compiled_way_is_taken_where_it_is_installed():
    assert websocket_frames.unmask is not unmask_in_python
