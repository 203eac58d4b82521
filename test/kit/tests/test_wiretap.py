"""What is read from a recording is what was said."""

from __future__ import annotations

import socket

from bothy_kit.wiretap import Half, wiretap

MASK = bytes((1, 2, 3, 4))


def frame(opcode: int, payload: bytes, *, final: bool = True, masked: bool = True) -> bytes:
    """RFC 6455, 5.2."""
    match len(payload):
        case size if size < 126:
            length = bytes([size])
        case size if size < 65536:
            length = b"\x7e" + size.to_bytes(2, "big")
        case size:
            length = b"\x7f" + size.to_bytes(8, "big")
    head = bytes([opcode | (0x80 if final else 0), length[0] | (0x80 if masked else 0)]) + length[1:]
    if not masked:
        return head + payload
    return head + MASK + bytes(byte ^ MASK[at % 4] for at, byte in enumerate(payload))


def test_requests_and_what_follows_an_upgrade_are_read() -> None:
    post = b"POST /a HTTP/1.1\r\nContent-Length: 4\r\nX-Word: one\r\n\r\n\r\n\r\n"
    upgrade = b"GET /b HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"
    said = frame(1, b"text") + frame(9, b"ping") + frame(2, b"be", final=False) + frame(0, b"gun")
    long = [frame(2, b"x" * 300), frame(2, b"y" * 70_000)]
    messages, spoken = Half(bytearray(post + upgrade + said + b"".join(long) + long[0][:9])).read()
    assert [(each.line, each.body) for each in messages] == [
        ("POST /a HTTP/1.1", b"\r\n\r\n"),
        ("GET /b HTTP/1.1", b""),
    ]
    assert messages[0].headers["x-word"] == "one"
    assert spoken == ["text", b"begun", b"x" * 300, b"y" * 70_000]


def test_an_answer_that_upgrades_is_followed_by_frames_without_a_mask() -> None:
    answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n" + frame(1, b"hello", masked=False)
    messages, spoken = Half(bytearray(answer)).read()
    assert [each.line for each in messages] == ["HTTP/1.1 101 Switching Protocols"]
    assert spoken == ["hello"]


def test_every_byte_of_both_ends_passes_and_is_kept() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, wiretap(server.getsockname()) as tap:
        with socket.create_connection(("127.0.0.1", tap.port)) as caller:
            caller.sendall(b"asked")
            caller.shutdown(socket.SHUT_WR)
            called, _ = server.accept()
            with called:
                assert called.recv(5, socket.MSG_WAITALL) == b"asked"
                assert called.recv(1) == b""
                called.sendall(b"answered")
            assert caller.recv(8, socket.MSG_WAITALL) == b"answered"
        (call,) = tap.calls
        assert (bytes(call.asked.raw), bytes(call.answered.raw)) == (b"asked", b"answered")
