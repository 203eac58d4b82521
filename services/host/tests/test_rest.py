"""Pairing against a real HTTP server on loopback."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bothy_host import rest
from bothy_host.tokens import KeysUnavailable
from bothy_wire.codes import code_hash
from bothy_wire.signing import Purpose, verify

TLS = ssl.create_default_context()
HOST_ID = uuid.uuid4()
ANSWER = {"host_id": str(HOST_ID), "name": "lab-1", "state": "pending", "pairing_seq": 2, "join": "j"}


class Site:
    """Answers every request the same way and keeps the last body."""

    def __init__(self) -> None:
        self.status, self.answer, self.body, self.headers = 201, json.dumps(ANSWER), {}, {}
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                site.path = self.path
                site.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.do_GET()

            def do_GET(self) -> None:
                self.send_response(site.status)
                for header in site.headers.items():
                    self.send_header(*header)
                self.end_headers()
                self.wfile.write(site.answer.encode())

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.audience = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def site():
    site = Site()
    thread = threading.Thread(target=site.server.serve_forever)
    thread.start()
    yield site
    site.server.shutdown()
    site.server.server_close()
    thread.join()


def test_pairing_proves_both_keys(site):
    state, host_state = rest.pair(site.audience, "code", tls=TLS, timeout=5)
    assert (state.host_id, state.name, state.pairing_seq, state.join) == (HOST_ID, "lab-1", 2, "j")
    assert (state.audience, host_state) == (site.audience, "pending")
    assert site.path == "/api/v1/hosts/pair"
    assert site.body["code"] == "code"
    signing, channel, signature = (base64.b64decode(site.body[n]) for n in ("signing_key", "channel_key", "signature"))
    hashed = code_hash("code")
    assert verify(signing, signature, Purpose.HOST_PAIR, site.audience, hashed, signing, channel)
    assert state.signer.public_key().public_bytes_raw() == signing
    assert state.channel_public == channel


@pytest.mark.parametrize(
    ("status", "answer", "message"),
    [
        (401, '{"code": "pairing_code_invalid", "detail": "x"}', "wrong, used or expired"),
        (503, '{"code": "unavailable"}', "try again"),
        (422, '{"code": "invalid", "detail": "bad name"}', "bad name"),
        (404, "<html>not here</html>", "no bothy relay"),
        (200, "<html>hello</html>", "no bothy relay"),
        (201, "{}", "not as a bothy relay"),
    ],
)
def test_refusals_are_one_line(site, status, answer, message):
    site.status, site.answer = status, answer
    with pytest.raises(rest.PairError, match=message) as refused:
        rest.pair(site.audience, "code", tls=TLS, timeout=5)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("code", ["rate_limited", "unavailable"])
@pytest.mark.parametrize(
    ("headers", "when"),
    [({"Retry-After": "7"}, "in 7 s"), ({}, "in a moment"), ({"Retry-After": "Mon, 30 Nov 2026"}, "in a moment")],
)
def test_a_refusal_that_passes_says_when_to_try_again(site, code, headers, when):
    site.status, site.answer, site.headers = 429, json.dumps({"code": code}), headers
    with pytest.raises(rest.PairError, match=f"try again {when}$"):
        rest.pair(site.audience, "code", tls=TLS, timeout=5)


def test_a_server_that_is_not_there():
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        with pytest.raises(rest.PairError, match="cannot reach"):
            rest.pair(f"http://127.0.0.1:{reserved.getsockname()[1]}", "code", tls=TLS, timeout=5)


def test_a_tls_fault_is_named(site):
    with pytest.raises(rest.PairError, match="TLS"):
        rest.pair(site.audience.replace("http", "https"), "code", tls=TLS, timeout=5)


async def test_keys_are_fetched(site):
    site.status, site.answer = 200, '{"keys": []}'
    assert await rest.fetch_jwks(site.audience, tls=TLS, patience=5) == {"keys": []}
    for status, answer in ((500, "{}"), (200, "[]"), (200, "x")):
        site.status, site.answer = status, answer
        with pytest.raises(KeysUnavailable):
            await rest.fetch_jwks(site.audience, tls=TLS, patience=5)
