from __future__ import annotations

from ipaddress import ip_network

import msgspec
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from bothy_server.platform import edge_probe
from bothy_server.platform.edge_probe import EdgeProbe, Seen


@pytest.fixture
def client() -> TestClient:
    probe = EdgeProbe(
        "api-1",
        {"good": 0.0, "long": 1e9}.get,
        (ip_network("10.0.0.2"),),
        ("https://relay.example.com",),
        lambda: 0.5,
    )

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


def test_no_token_holds_an_answer_longer_than_the_bound(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_probe, "MAX_HOLD_S", 0.0)
    assert client.get("/", headers={"authorization": "Bearer long"}).content.endswith(b"{}\n{}\n")
