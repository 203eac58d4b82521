"""Real errors of real sockets, in words."""

from __future__ import annotations

import asyncio
import socket
import ssl

import pytest

from bothy_wire.unreachable import explain, is_local

ORIGIN = "https://relay.example.com"
REFUSED = "connection refused; is the address right, and is the relay running?"


async def failure(host: str, port: int, **options: object) -> BaseException:
    with pytest.raises((OSError, ssl.SSLError)) as failed:
        await asyncio.open_connection(host, port, **options)
    return failed.value


async def test_nobody_listens(unused_tcp_port):
    error = await failure("127.0.0.1", unused_tcp_port)
    assert explain(ORIGIN, error) == f"cannot reach {ORIGIN}: {REFUSED}"


def test_nobody_listens_on_any_address_of_a_name():
    error = OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 1), [Errno 111] Connect call failed")
    assert explain(ORIGIN, error) == f"cannot reach {ORIGIN}: {REFUSED}"


def test_the_innermost_reason_counts():
    def fail() -> None:
        try:
            raise ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 1)")
        except OSError as inner:
            raise RuntimeError("all connection attempts failed") from inner

    with pytest.raises(RuntimeError) as failed:
        fail()
    assert explain(ORIGIN, failed.value).endswith(REFUSED)


def test_a_circle_of_reasons_has_an_end():
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    assert explain(ORIGIN, first) == f"cannot reach {ORIGIN}: second"


def test_a_name_that_does_not_exist():
    error = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    assert explain(ORIGIN, error) == f"cannot reach {ORIGIN}: Name or service not known; is the address right?"


async def test_what_speaks_no_tls():
    async def shout(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.0 400 plain\r\n\r\n")
        writer.close()

    plain = await asyncio.start_server(shout, "127.0.0.1", 0)
    error = await failure("127.0.0.1", plain.sockets[0].getsockname()[1], ssl=ssl.create_default_context())
    plain.close()
    await plain.wait_closed()
    said = explain(ORIGIN, error)
    assert said.startswith(f"no TLS with {ORIGIN}: ")
    assert said.endswith("; is the port right?")


def test_a_certificate_that_nobody_vouches_for():
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "self-signed certificate"
    assert "is not trusted: self-signed certificate; SSL_CERT_FILE names" in explain(ORIGIN, error)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (TimeoutError(), f"{ORIGIN} does not answer; is the address right?"),
        (OSError(), f"cannot reach {ORIGIN}: OSError"),
        (OSError(22, "Invalid argument"), f"cannot reach {ORIGIN}: Invalid argument"),
        (OSError(113, "No route to host"), f"cannot reach {ORIGIN}: there is no way to it; is this machine online?"),
        (ValueError("odd"), f"cannot reach {ORIGIN}: odd"),
    ],
)
def test_other_errors(error, words):
    assert explain(ORIGIN, error) == words


async def test_a_wait_that_was_given_up():
    with pytest.raises(TimeoutError) as late:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()
    assert explain(ORIGIN, late.value) == f"{ORIGIN} does not answer; is the address right?"


@pytest.mark.parametrize(
    ("error", "local"),
    [
        (socket.gaierror(-3, "Temporary failure in name resolution"), True),
        (OSError(101, "Network is unreachable"), True),
        (OSError("Multiple exceptions: [Errno 113] no route, [Errno 111] refused"), True),
        (OSError("Multiple exceptions: [Errno 111] refused, [Errno 111] refused"), False),
        (ConnectionRefusedError(111, "refused"), False),
        (TimeoutError(), False),
        (ValueError("odd"), False),
    ],
)
def test_whose_fault_it_is(error, local):
    outer = RuntimeError()
    outer.__cause__ = error
    assert is_local(outer) is local
