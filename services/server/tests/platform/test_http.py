"""Bodies are strict, and every refusal is a problem that a program and a person can read."""

import msgspec
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import StorageUnavailable
from bothy_server.platform.http import (
    SECURITY_HEADERS,
    SecurityHeaders,
    check_is_json,
    decode_json,
    exception_handlers,
    json_response,
    read_body,
)

MOST = 100


class Greeting(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    name: str
    times: int = 1


async def greet(request: Request) -> Response:
    raw = await read_body(request, MOST)
    check_is_json(request)
    return json_response(decode_json(raw, Greeting), 201)


async def refuse(_: Request) -> Response:
    raise Problem(429, "rate_limited", "Too many. Wait a little.", retry_after_s=7)


async def away(_: Request) -> Response:
    raise StorageUnavailable("OperationalError 57P01")


async def fail(_: Request) -> Response:
    raise ZeroDivisionError("a detail of ours")


async def page(_: Request) -> Response:
    return Response("hello", headers={"Content-Security-Policy": "default-src 'self'"})


@pytest.fixture
def client():
    app = Starlette(
        routes=[
            Route("/greet", greet, methods=["POST"]),
            Route("/refuse", refuse),
            Route("/away", away),
            Route("/fail", fail),
            Route("/page", page),
        ],
        middleware=[Middleware(SecurityHeaders)],
        exception_handlers=dict(exception_handlers(retry_after=1.2)),
    )
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def problem(response) -> tuple[int, str]:
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert set(body) == {"type", "title", "status", "code", "detail"}
    assert body["type"] == "about:blank"
    assert body["status"] == response.status_code
    assert body["detail"].endswith(".") or body["code"] == "body_invalid"
    return response.status_code, body["code"]


def send(client, body: bytes | str, content_type: str = "application/json"):
    return client.post("/greet", content=body, headers={"content-type": content_type})


def test_a_good_body(client):
    response = send(client, '{"name": "Robin"}', "application/json; charset=utf-8")
    assert (response.status_code, response.json()) == (201, {"name": "Robin", "times": 1})


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"name": 1}',
        '{"name": "Robin", "extra": 1}',
        '{"name": "Robin", "times": "1"}',
        b'{"name": "\xff"}',
        "[" * 90,
    ],
)
def test_a_body_that_is_not_exactly_it(client, body):
    assert problem(send(client, body)) == (400, "body_invalid")


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "", "application/jsonp"])
def test_a_content_type_that_a_foreign_page_may_send(client, content_type):
    assert problem(send(client, '{"name": "Robin"}', content_type)) == (415, "content_type_invalid")


def test_a_body_that_is_too_long_with_and_without_its_length(client):
    body = b'{"name": "' + b"x" * MOST + b'"}'
    assert problem(send(client, body)) == (413, "body_too_large")
    assert problem(send(client, iter([body[:60], body[60:]]))) == (413, "body_too_large")


def test_a_refusal_with_the_time_to_wait(client):
    response = client.get("/refuse")
    assert problem(response) == (429, "rate_limited")
    assert response.headers["retry-after"] == "7"


def test_a_database_that_is_away(client):
    response = client.get("/away")
    assert problem(response) == (503, "unavailable")
    assert response.headers["retry-after"] == "2"
    assert "57P01" not in response.text


def test_a_fault_of_ours_tells_nothing_of_it(client):
    response = client.get("/fail")
    assert problem(response) == (500, "internal")
    assert "detail of ours" not in response.text


def test_a_path_and_a_method_that_do_not_exist(client):
    assert problem(client.get("/nowhere")) == (404, "path_unknown")
    response = client.get("/greet")
    assert problem(response) == (405, "method_not_allowed")
    assert response.headers["allow"] == "POST"


@pytest.mark.parametrize("path", ["/page", "/refuse", "/nowhere"])
def test_every_answer_carries_the_security_headers(client, path):
    response = client.get(path)
    assert set(SECURITY_HEADERS) <= {name.lower() for name in response.headers}


def test_an_endpoint_may_choose_another_value(client):
    assert client.get("/page").headers.get_list("content-security-policy") == ["default-src 'self'"]
