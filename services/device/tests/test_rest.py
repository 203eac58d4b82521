"""The client against a real HTTP server."""

import asyncio
import socket
import ssl
import subprocess
from uuid import UUID

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bothy_device.failure import AnswerLost, Failure, Unreachable
from bothy_device.rest import Opened, Rest, SessionRow


@pytest.fixture
async def rest(relay, login):
    async with Rest(relay.origin, timeout=5, login=login) as client:
        yield client


async def test_an_access_token_is_fetched_once_and_kept_in_memory(rest, relay, home):
    await rest.hosts()
    await rest.hosts()
    assert [path for _, path, _, _ in relay.requests] == ["/auth/challenge", "/auth/token", "/hosts", "/hosts"]
    assert not [each for each in home.rglob("*") if each.is_file() and b"access-" in each.read_bytes()]


async def test_a_token_that_became_invalid_is_renewed_once(rest, relay):
    await rest.hosts()
    relay.tokens = 7
    (host,) = await rest.hosts()
    assert host.name == "lab-1"
    relay.refusals["/hosts"] = (401, "token_invalid", {})
    relay.requests.clear()
    with pytest.raises(Failure, match="does not accept this login any more"):
        await rest.hosts()
    assert [path for _, path, _, _ in relay.requests] == ["/hosts", "/auth/challenge", "/auth/token", "/hosts"]


async def test_a_repeat_behind_a_renewed_token_carries_the_same_key(rest, relay):
    await rest.hosts()
    relay.tokens = 7
    await rest.make("/terminal/sessions", Opened, {})
    keys = [headers.get("idempotency-key") for _, path, _, headers in relay.requests if path == "/terminal/sessions"]
    assert len(keys) == 2
    assert keys[0] == keys[1]
    assert len(keys[0]) == 32


@pytest.mark.parametrize("loss", [None, 502, 504])
async def test_an_answer_that_was_lost_is_asked_for_again_once_under_the_same_key(rest, relay, loss):
    """What the relay made is not made twice, and the person does not hear of it."""
    relay.losses = [loss]
    assert (await rest.open(relay.host_id, "shell", "alex")).session_id == relay.session_id
    sent = [
        (body, headers["idempotency-key"]) for _, _, body, headers in relay.requests_of("POST", "/terminal/sessions")
    ]
    assert len(sent) == 2
    assert sent[0] == sent[1]
    relay.losses = [loss, loss, loss]
    with pytest.raises(AnswerLost):
        await rest.open(relay.host_id, "shell", "alex")
    assert len(relay.losses) == 1


async def test_nothing_is_sent_again_that_was_answered_or_never_arrived(rest, relay):
    relay.losses = [503]
    with pytest.raises(Failure, match="answered 503") as failed:
        await rest.make("/terminal/sessions", Opened, {})
    assert not isinstance(failed.value, AnswerLost)
    relay.refusals["/terminal/sessions"] = (409, "host_unavailable", {})
    with pytest.raises(Failure, match="not connected"):
        await rest.make("/terminal/sessions", Opened, {})
    assert len(relay.requests_of("POST", "/terminal/sessions")) == 2
    relay.go_away()
    with pytest.raises(Unreachable, match="cannot reach") as failed:
        await rest.make("/terminal/sessions", Opened, {})
    assert not isinstance(failed.value, AnswerLost)


async def test_open_proves_the_key_and_carries_what_was_proven(rest, relay):
    opened = await rest.open(relay.host_id, "shell", "alex")
    assert opened.host_channel_key == relay.host_public
    made = [(path, body, headers) for _, path, body, headers in relay.requests if path == "/terminal/sessions"]
    ((_, body, headers),) = made
    assert (body["host_id"], body["profile"], body["session_user"]) == (str(relay.host_id), "shell", "alex")
    assert UUID(body["step_up_id"])
    assert headers["idempotency-key"]


async def test_attach_proves_the_key_only_when_asked(rest, relay):
    (row,) = await rest.sessions(ended=False)
    assert (await rest.attach(row)).session_id == relay.session_id
    path = f"/terminal/sessions/{relay.session_id}/attach"
    relay.refusals[path] = (401, "step_up_required", {})
    with pytest.raises(Failure, match="did not take the proof"):
        await rest.attach(row)
    bodies = [body for _, each, body, _ in relay.requests if each == path]
    assert [body["step_up_id"] is None for body in bodies] == [True, True, False]
    assert relay.wanted["purpose"] == "attach"


async def test_sessions_asks_for_the_ended_ones(rest, relay):
    await rest.sessions(ended=True)
    assert relay.requests[-1][1] == "/terminal/sessions?all=true"
    await rest.sessions(ended=False)
    assert relay.requests[-1][1] == "/terminal/sessions?all=false"


async def test_a_refusal_has_its_code_and_says_when_to_try_again(rest, relay):
    relay.refusals["/hosts"] = (503, "unavailable", {"Retry-After": "7"})
    with pytest.raises(Failure, match=r"cannot reach its database; try again in a moment \(in 7 s\)") as refused:
        await rest.hosts()
    assert (refused.value.code, refused.value.retry_after) == ("unavailable", 7)


@pytest.mark.parametrize(
    ("code", "told", "retry_after", "words"),
    [
        ("rate_limited", "20", 20, r"wait a moment and try again \(in 20 s\)$"),
        ("rate_limited", "Mon, 30 Nov 2026", 0, "wait a moment and try again$"),
        ("rate_limited", "9" * 5000, 0, "wait a moment and try again$"),
        ("session_limit", "86000", 86000, "end one with bothy close$"),
    ],
)
async def test_a_time_to_wait_is_told_where_waiting_helps(rest, relay, code, told, retry_after, words):
    relay.refusals["/hosts"] = (429, code, {"Retry-After": told})
    with pytest.raises(Failure, match=words) as refused:
        await rest.hosts()
    assert refused.value.retry_after == retry_after


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (502, b"<html>bad gateway</html>", r"answered 502 \(Bad Gateway\); is it a bothy relay"),
        (404, b"", r"answered 404 \(Not Found\)"),
        (200, b"<html>welcome</html>", "gave an answer that is none"),
        (200, b"[]", "gave an answer that is none"),
        (302, b"", r"answered 302 \(Found\)"),
    ],
)
async def test_something_that_is_no_bothy_server(rest, relay, status, body, words):
    await rest.hosts()
    relay.refusals["/hosts"] = (status, body, {})
    with pytest.raises(Failure, match=words):
        await rest.hosts()


async def test_an_unknown_field_of_a_newer_server_is_no_fault(rest, relay):
    relay.hosts[0]["colour"] = "blue"
    (host,) = await rest.hosts()
    assert host.profiles == {"shell": ["alex"]}
    assert "colour" not in msgspec.to_builtins(host)


async def test_close_answers_the_row(rest, relay):
    row = await rest.close(relay.session_id)
    assert isinstance(row, SessionRow)
    assert row.close_reason == "client_closed"


async def ask(origin, *, seconds=5.0):
    async with Rest(origin, timeout=seconds) as client:
        await client.redeem("code", "laptop", Ed25519PrivateKey.generate(), b"k" * 32)


async def test_nobody_there():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        origin = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(Failure, match=f"cannot reach {origin}: "):
            await ask(origin)
    with pytest.raises(Failure, match=r"cannot reach http://relay\.invalid: "):
        await ask("http://relay.invalid")


async def test_somebody_who_says_nothing():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        origin = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(Failure, match=f"{origin} does not answer; is the address right"):
            await ask(origin, seconds=0.2)


@pytest.fixture
async def tls_server(tmp_path):
    """Its certificate is signed by itself."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=localhost"
    await asyncio.to_thread(
        subprocess.run,
        [*command.split(), "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    yield f"https://localhost:{server.sockets[0].getsockname()[1]}", certificate
    server.close()


async def test_a_certificate_that_is_not_trusted(tls_server):
    with pytest.raises(Failure, match=r"the certificate of .* is not trusted: .*; SSL_CERT_FILE names"):
        await ask(tls_server[0])


async def test_an_authority_of_ones_own(tls_server, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(tls_server[1]))
    with pytest.raises(Failure, match="answered 404"):
        await ask(tls_server[0])


async def test_tls_with_a_server_that_has_none():
    async def answer(reader, writer):
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 X\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        with pytest.raises(Failure, match=r"no TLS with .*is the port right"):
            await ask(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")
