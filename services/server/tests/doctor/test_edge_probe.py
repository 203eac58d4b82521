"""The doctor's questions to something that stands at the edge's address and is no edge of ours."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import uuid4

import pytest
from websockets.sync.server import ServerConnection, serve
from websockets.typing import Subprotocol

from bothy_server.doctor import edge_probe
from bothy_server.doctor.edge_probe import ANSWER_BYTES, Edge, EdgeError
from bothy_wire.limits import CONTROL_SUBPROTOCOL, DATA_SUBPROTOCOL, STREAM_SUBPROTOCOL


@contextmanager
def answering(status: int, body: bytes) -> Iterator[Edge]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Bothy-Node", "api-1")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield Edge(f"http://127.0.0.1:{server.server_address[1]}")
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("status", "told"), [(426, "another key store"), (429, "server.max_probes"), (502, "answered 502")]
)
def test_a_refused_probe_is_no_silence_that_was_cut(status: int, told: str) -> None:
    with answering(status, b"{}\n") as edge:
        for ask in (lambda: edge.held(uuid4(), "token", 0.1), lambda: edge.seen(uuid4(), "token")):
            with pytest.raises(EdgeError, match=told):
                ask()


def test_an_edge_that_answers_slowly_does_not_hold_the_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_probe, "PASS_S", -1.0)
    with answering(426, b"{}\n") as edge, pytest.raises(EdgeError, match="answered 0 of 1 requests"):
        edge.answers([uuid4()])


@pytest.mark.parametrize("url", ["http://a..example.com", "http://" + "a" * 64 + ".example.com"])
def test_a_name_that_cannot_be_is_no_edge(url: str) -> None:
    with pytest.raises(EdgeError):
        Edge(url).reach()


def test_an_answer_without_an_end_is_not_read() -> None:
    with answering(426, b"x" * (ANSWER_BYTES + 1)) as edge, pytest.raises(EdgeError, match="more than"):
        edge.answers([uuid4()])


@pytest.mark.parametrize("frame", ["[]", '"hello"', "{}", '{"type": 1}', "no json"])
def test_a_first_frame_that_is_no_hello_is_told(frame: str) -> None:
    def speak(socket: ServerConnection) -> None:
        socket.send(frame)

    known = [Subprotocol(each) for each in (CONTROL_SUBPROTOCOL, DATA_SUBPROTOCOL, STREAM_SUBPROTOCOL)]
    with serve(speak, "127.0.0.1", 0, subprotocols=known) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            port = server.socket.getsockname()[1]
            assert len(Edge(f"http://127.0.0.1:{port}").refused(uuid4())) == 3
        finally:
            server.shutdown()
            thread.join()
