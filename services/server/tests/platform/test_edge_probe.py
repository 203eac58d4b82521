from __future__ import annotations

import contextlib
import math
from ipaddress import ip_network

import msgspec
import pytest
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.types import Message

from bothy_server.platform import edge_probe
from bothy_server.platform.edge_probe import EdgeProbe, Seen


def made(most: int) -> EdgeProbe:
    return EdgeProbe(
        "api-1",
        {"good": 0.0, "long": 1e9, "no number": math.nan}.get,
        (ip_network("10.0.0.2"),),
        ("https://relay.example.com",),
        lambda: 0.5,
        most,
    )


@pytest.fixture
def client() -> TestClient:
    probe = made(1)

    async def answer(request: Request) -> Response:
        return probe.answer(request) or Response(status_code=426)

    return TestClient(Starlette(routes=[Route("/", answer)]), client=("10.0.0.2", 4711))


@pytest.mark.parametrize("authorization", [None, "Bearer other", "Basic good", "Bearer"])
def test_a_stranger_gets_the_answer_of_the_path(client: TestClient, authorization: str | None) -> None:
    headers = {} if authorization is None else {"authorization": authorization}
    answer = client.get("/", headers=headers)
    assert (answer.status_code, answer.content) == (426, b"")


def test_a_probe_is_told_what_the_node_saw(client: TestClient) -> None:
    headers = {
        "authorization": "Bearer good",
        "x-forwarded-for": "203.0.113.7, 198.51.100.1",
        "x-forwarded-proto": "https",
        "host": "relay.example.com",
    }
    first, *rest = client.get("/", headers=headers).content.splitlines()
    assert rest == [b"{}", b"{}"]
    assert msgspec.json.decode(first, type=Seen) == Seen(
        "api-1",
        "10.0.0.2",
        ["203.0.113.7", "198.51.100.1"],
        "198.51.100.1",
        "https",
        "relay.example.com",
        ("https://relay.example.com",),
        0.5,
    )


@pytest.mark.parametrize("token", ["long", "no number"])
def test_no_token_holds_an_answer_longer_than_the_bound(
    token: str, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge_probe, "MAX_HOLD_S", 0.0)
    assert client.get("/", headers={"authorization": f"Bearer {token}"}).content.endswith(b"{}\n{}\n")


def asked() -> Request:
    headers = [(b"authorization", b"Bearer long")]
    return Request({"type": "http", "method": "GET", "path": "/", "headers": headers, "client": ("10.0.0.2", 4711)})


async def test_more_probes_than_the_bound_are_refused_until_one_ends() -> None:
    probe = made(2)
    held = []
    for _ in range(2):
        answer = probe.answer(asked())
        assert answer is not None
        assert answer.status_code == 200
        held.append(answer)
    over = probe.answer(asked())
    assert over is not None
    assert over.status_code == 429

    async def gone() -> Message:
        return {"type": "http.disconnect"}

    async def broken(_: Message) -> None:
        raise OSError("the caller left before the first byte")

    with contextlib.suppress(ClientDisconnect, OSError):
        await held[0]({"type": "http", "asgi": {"spec_version": "2.4"}}, gone, broken)
    again = probe.answer(asked())
    assert again is not None
    assert again.status_code == 200
