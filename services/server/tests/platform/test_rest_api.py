"""Serving a table of operations: who may call, what a body and a query may be, and how a refusal looks."""

import hashlib
import ipaddress
import logging
from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

import msgspec
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from bothy_server.kernel.caller import Caller, RepeatKey
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.rates import Rate
from bothy_server.kernel.unit import StorageUnavailable
from bothy_server.platform.client_rates import ClientRates
from bothy_server.platform.http import exception_handlers
from bothy_server.platform.operations import AnonymousCall, Call, Empty, operation
from bothy_server.platform.rest_api import RestApi
from bothy_wire.ids import DeviceId, PersonId

MOST, LIFE_S, GUESSES = 200, 3600.0, 3
ROBIN = Caller(PersonId(UUID(int=1)), DeviceId(UUID(int=2)), is_operator=False, kind="cli")


class Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    thing_id: UUID | None = None


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    all: bool = False
    at_most: int = 10
    since: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    thing_id: UUID | None = None
    word: str = ""


class Told(msgspec.Struct, frozen=True):
    told: str


class Things:
    """Keeps what it was called with."""

    def __init__(self) -> None:
        self.calls: list[AnonymousCall] = []

    @operation("POST", "/things", 201, refuses={409: ("thing_exists",)}, repeatable=True)
    async def make_thing(self, call: Call[Wanted]) -> Told:
        """Make a thing."""
        self.calls.append(call)
        if call.body.name == "old":
            raise Problem(409, "thing_exists", "There is one of this name.")
        if call.body.name == "odd":
            raise Problem(418, "teapot", "Nobody declared this.")
        if call.body.name == "away":
            raise StorageUnavailable("gone")
        return Told("made")

    @operation("GET", "/things", query=Asked)
    async def list_things(self, call: Call[None]) -> Told:
        """Things."""
        self.calls.append(call)
        return Told("listed")

    @operation("POST", "/guesses")
    async def guess_thing(self, call: AnonymousCall[Wanted]) -> Told:
        """Guess."""
        self.calls.append(call)
        return Told("guessed")

    @operation("GET", "/things/{thing_id}")
    async def get_thing(self, call: Call[None]) -> Told:
        """One thing."""
        self.calls.append(call)
        return Told("it")

    @operation("POST", "/things/forget", 204)
    async def forget_things(self, call: Call[Empty]) -> None:
        """Forget."""

    @operation("GET", "/rules", max_age_s=60)
    async def read_rules(self, call: AnonymousCall[None]) -> Told:
        """Read."""
        self.calls.append(call)
        return Told("rules")


@pytest.fixture
def things() -> Things:
    return Things()


@pytest.fixture
def client(things):
    async def caller(token: str | None) -> Caller:
        if token != "good":
            raise Problem(401, "token_invalid", "Sign in again.")
        return ROBIN

    rest = RestApi(
        caller=caller,
        client_rates=ClientRates(Rate(GUESSES, 60), 100, lambda: 0.0),
        device_rates=ClientRates(Rate(100, 60), 100, lambda: 0.0),
        max_body_bytes=MOST,
        trusted=(ipaddress.ip_network("10.0.0.0/8"),),
        repeat_window=LIFE_S,
    )
    app = Starlette(routes=rest.routes(things), exception_handlers=dict(exception_handlers(retry_after=2)))
    with TestClient(app, client=("10.0.0.1", 4242), headers={"authorization": "Bearer good"}) as client:
        yield client


def problem(answer) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["code"]


def test_an_answer_has_the_status_of_the_row(client, things):
    answer = client.post("/things", json={"name": "new"})
    assert (answer.status_code, answer.json()) == (201, {"told": "made"})
    assert answer.headers["content-type"] == "application/json"
    (call,) = things.calls
    assert (call.caller, call.body, call.repeat) == (ROBIN, Wanted("new"), None)


def test_an_operation_that_answers_nothing_has_no_body(client):
    answer = client.post("/things/forget", json={})
    assert (answer.status_code, answer.content) == (204, b"")
    assert "content-type" not in answer.headers


def test_a_refusal_of_the_operation_is_a_problem(client, caplog):
    assert problem(client.post("/things", json={"name": "old"})) == (409, "thing_exists")
    assert caplog.records == []


@pytest.mark.undeclared_refusals
def test_a_refusal_that_no_row_declares_is_answered_and_logged(client, caplog):
    assert problem(client.post("/things", json={"name": "odd"})) == (418, "teapot")
    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (logging.ERROR, "undeclared refusal")
    assert (record.__dict__["bothy.operation"], record.__dict__["bothy.problem"]) == ("make_thing", "teapot")


def test_a_database_that_is_away(client):
    answer = client.post("/things", json={"name": "away"})
    assert problem(answer) == (503, "unavailable")
    assert answer.headers["retry-after"] == "2"


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer bad", "Basic good", "good"])
def test_who_is_not_signed_in_learns_nothing_of_the_body(client, things, header):
    answer = client.post("/things", content="no JSON at all", headers={"authorization": header})
    assert problem(answer) == (401, "token_invalid")
    assert things.calls == []


def test_an_operation_for_anybody_asks_for_no_token(client, things):
    assert client.get("/rules", headers={"authorization": "Bearer bad"}).status_code == 200
    assert type(things.calls[0]) is AnonymousCall


@pytest.mark.parametrize("method", ["PUT", "OPTIONS", "SHOUT"])
def test_a_path_tells_all_methods_that_it_takes(client, method):
    answer = client.request(method, "/things")
    assert problem(answer) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "GET, HEAD, POST"
    assert client.request(method, "/things/forget").headers["allow"] == "POST"


def test_a_head_is_answered_like_a_get(client):
    answer = client.head("/things")
    assert (answer.status_code, answer.content) == (200, b"")


def test_a_path_without_a_parameter_is_no_id(client, things):
    assert problem(client.get("/things/forget")) == (405, "method_not_allowed")
    assert client.get("/things/one").status_code == 200
    assert things.calls[0].path == {"thing_id": "one"}


def test_an_answer_may_be_kept_as_long_as_the_row_says(client):
    assert client.get("/rules").headers["cache-control"] == "max-age=60"
    assert "cache-control" not in client.get("/things").headers


# ---- bodies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body", ["", "{}", '{"name": 1}', '{"name": "x", "other": 1}', '{"name": "x", "name": "y"}', '{"name": NaN}']
)
def test_a_body_is_exactly_what_the_operation_takes(client, things, body):
    answer = client.post("/things", content=body, headers={"content-type": "application/json"})
    assert problem(answer) == (400, "body_invalid")
    assert things.calls == []


def test_an_id_in_a_body_has_one_spelling(client):
    for text in ("0199AAAA-0000-7000-8000-00000000000A", "0199aaaa000070008000" + "0" * 12):
        assert problem(client.post("/things", json={"name": "x", "thing_id": text})) == (400, "body_invalid"), text


def test_a_body_of_another_type_or_too_long(client):
    assert problem(client.post("/things", data={"name": "x"})) == (415, "content_type_invalid")
    assert problem(client.post("/things", json={"name": "x" * MOST})) == (413, "body_too_large")


# ---- queries --------------------------------------------------------------------------------------------------------


def test_a_query_without_parameters_has_the_defaults(client, things):
    assert client.get("/things").status_code == 200
    assert things.calls[0].asked(Asked) == Asked()


def test_text_becomes_what_the_parameter_is(client, things):
    query = "all=true&at-most=3&since=2030-01-02T03:04:05Z&thing-id=0199aaaa-0000-7000-8000-00000000000a&word=1"
    assert client.get(f"/things?{query}").status_code == 200
    since, thing_id = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC), UUID("0199aaaa-0000-7000-8000-00000000000a")
    assert things.calls[0].asked(Asked) == Asked(all=True, at_most=3, since=since, thing_id=thing_id, word="1")


def test_the_largest_number_of_the_database_is_a_number(client, things):
    assert client.get(f"/things?at-most={(1 << 63) - 1}").status_code == 200
    assert things.calls[0].asked(Asked).at_most == (1 << 63) - 1


@pytest.mark.parametrize(
    "query",
    [
        "all=1",
        "all=TRUE",
        "all=",
        "all",
        "all=true&all=true",
        "all=null",
        "at-most=x",
        "at-most=01",
        "at-most=1.0",
        "at-most=1e1",
        "at-most=+1",
        "at-most=true",
        "at-most=1%2C%22all%22:true",
        "at-most=" + "9" * 5000,
        "at_most=1",
        "since=1700000000",
        "since=2030-01-02",
        "since=2030-01-02T03:04:05",
        "since=null",
        "thing-id=0199AAAA-0000-7000-8000-00000000000A",
        "other=1",
        "word=%22&other%22=1",
    ],
)
def test_any_other_query_is_refused(client, things, query):
    assert problem(client.get(f"/things?{query}")) == (400, "query_invalid")
    assert things.calls == []


# ---- repeats --------------------------------------------------------------------------------------------------------


def test_an_act_that_the_caller_named(client, things):
    answer = client.post("/things", content=b'{"name":"x"}', headers=JSON | {"idempotency-key": "one"})
    assert answer.status_code == 201
    hashed = hashlib.sha256(b'POST\n/things\n{"name":"x"}').digest()
    assert things.calls[0].repeat == RepeatKey("one", hashed, LIFE_S)


def test_another_body_is_another_request(client, things):
    for body in (b'{"name":"x"}', b'{"name":"y"}'):
        client.post("/things", content=body, headers=JSON | {"idempotency-key": "one"})
    first, second = (call.repeat for call in things.calls)
    assert first.key == second.key
    assert first.request_hash != second.request_hash


@pytest.mark.parametrize("keys", [[""], ["x" * 129], ["a\tb"], [b"\xe9"], ["one", "one"]])
def test_a_name_of_an_act_is_short_and_readable(client, things, keys):
    headers = [("content-type", "application/json"), *(("idempotency-key", key) for key in keys)]
    answer = client.post("/things", content=b'{"name":"x"}', headers=headers)
    assert problem(answer) == (400, "idempotency_key_invalid")
    assert things.calls == []


def test_an_operation_that_makes_nothing_does_not_read_the_name(client):
    assert client.get("/things", headers={"idempotency-key": "x" * 500}).status_code == 200


# ---- addresses ------------------------------------------------------------------------------------------------------

JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("forwarded", "address"),
    [("", "10.0.0.1"), ("192.0.2.7", "192.0.2.7"), ("192.0.2.8, 192.0.2.7", "192.0.2.7"), ("x", "10.0.0.1")],
)
def test_the_address_is_as_far_as_the_proxies_tell(client, things, forwarded, address):
    client.get("/rules", headers={"x-forwarded-for": forwarded} if forwarded else {})
    assert things.calls[0].address == address


def test_a_stranger_guesses_so_often_and_no_body_is_read_then(client, things):
    for _ in range(GUESSES):
        assert client.post("/guesses", json={"name": "x"}).status_code == 200
    answer = client.post("/guesses", content="no JSON at all")
    assert problem(answer) == (429, "rate_limited")
    assert int(answer.headers["retry-after"]) > 0
    assert len(things.calls) == GUESSES
    assert client.post("/guesses", json={"name": "x"}, headers={"x-forwarded-for": "192.0.2.7"}).status_code == 200


def test_who_is_signed_in_is_not_counted_by_the_network(client):
    for _ in range(GUESSES + 1):
        assert client.post("/things", json={"name": "x"}).status_code == 201
