"""What every REST operation of a kind refuses, each operation tried: who calls, what is sent, and a database that is away."""

from __future__ import annotations

import base64
import itertools
from typing import Any
from uuid import uuid4

import httpx2 as httpx
import msgspec
import psycopg
import pytest
import pytest_asyncio
from msgspec import inspect

import openapi
from bothy_kit.cluster import ORIGIN, Cluster, cluster
from bothy_kit.fake_browser import FakeBrowser
from bothy_kit.fake_device import FakeDevice
from bothy_server.platform.operations import Operation, operations_of
from bothy_wire.signing import Purpose, sign

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROWS = [row for kind in openapi.adapters() for row, _ in operations_of(kind)]
UNKNOWN = "0199aaaa-0000-7000-8000-00000000000a"
MOST = 65536
SIGNED_IN = [row for row in ROWS if row.signed_in]
TAKING = [row for row in ROWS if row.takes is not None]
REPEATABLE = [row for row in ROWS if row.repeatable]


def of(rows: list[Operation]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", rows, ids=lambda row: row.name)


def example(kind: inspect.Type) -> Any:
    """The shortest JSON value that the decoder takes."""
    match kind:
        case inspect.StructType(fields=fields):
            return {field.encode_name: example(field.type) for field in fields if field.required}
        case inspect.StrType(min_length=least):
            return "x" * (least or 0)
        case inspect.BytesType(min_length=least):
            return base64.b64encode(bytes(least or 0)).decode()
        case inspect.UUIDType():
            return UNKNOWN
        case inspect.BoolType():
            return False
        case inspect.LiteralType(values=values):
            return values[0]
        case inspect.UnionType(types=types):
            return None if kind.includes_none else example(types[0])
        case _:
            raise AssertionError(f"no example of {kind}")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def node(shared_database_url, tmp_path_factory):
    groups = {
        "server": {"max_body_bytes": MOST, "trusted_proxies": ["127.0.0.1"]},
        "identity": {"address_rate": "1000 per hour"},
        "database": {"lock_timeout": "50ms"},
    }
    async with cluster(shared_database_url, tmp_path_factory.mktemp("node"), nodes=1, **groups) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def device(node) -> FakeDevice:
    return await node.operator(f"Kim-{uuid4().hex[:8]}")


@pytest_asyncio.fixture(loop_scope="module")
async def http():
    async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
        yield client


_networks = itertools.count(1)


async def call(
    http: httpx.AsyncClient,
    node: Cluster,
    row: Operation,
    device: FakeDevice | None = None,
    *,
    address: str = "",
    query: str = "",
    content: bytes | None = None,
    **headers: str,
) -> tuple[int, str]:
    """Status and code; every call comes from a network of its own unless ``address`` says which."""
    path = row.path
    for name in ("host_id", "session_id", "device_id", "person_id", "passkey_id", "device_login_id", "node_id"):
        path = path.replace(f"{{{name}}}", UNKNOWN)
    number = next(_networks)
    sent = {"x-forwarded-for": address or f"10.1.{number // 250}.{number % 250}", "content-type": "application/json"}
    if device is not None:
        sent["authorization"] = f"Bearer {device.access_token}"
    if content is None and row.takes is not None:
        content = msgspec.json.encode(example(inspect.type_info(row.takes)))
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    url = f"{node.nodes[0].url}{path}{query}"
    answer = await http.request(row.method, url, content=content, headers=sent)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.status_code in row.all_refusals()
    return answer.status_code, answer.json()["code"]


# ---- who calls ------------------------------------------------------------------------------------------------------


@of(SIGNED_IN)
async def test_nobody_is_told_to_sign_in(http, node, row):
    assert await call(http, node, row) == (401, "token_invalid")
    assert await call(http, node, row, authorization="Bearer x") == (401, "token_invalid")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def late_browser(node) -> FakeBrowser:
    """One whose login is over."""
    invited = await node.admin.people.add(f"Alex-{uuid4().hex[:8]}", is_operator=False)
    browser = await node.stack.enter_async_context(FakeBrowser(ORIGIN, node.nodes[0].url))
    await browser.redeem(invited.code)
    await browser.login()
    await node.sql("UPDATE devices SET login_until = now() WHERE id = %s", browser.device_id)
    return browser


@of(SIGNED_IN)
async def test_a_browser_whose_login_is_over_is_told_so(http, node, late_browser, row):
    assert await call(http, node, row, late_browser) == (401, "sign_in_required")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def eager(shared_database_url, tmp_path_factory):
    """An operator's device that has had its one call of the hour."""
    folder = tmp_path_factory.mktemp("eager")
    async with cluster(shared_database_url, folder, nodes=1, identity={"device_rate": "1 per hour"}) as node:
        device = await node.operator(f"Kim-{uuid4().hex[:8]}")
        assert (await device.rest("GET", "/me")).status == 200
        yield node, device


@of([row for row in ROWS if row.guessable])
async def test_a_network_that_calls_too_often_is_told_to_wait(http, shared_database_url, tmp_path, row):
    groups = {"server": {"trusted_proxies": ["127.0.0.1"]}, "identity": {"address_rate": "1 per hour"}}
    async with cluster(shared_database_url, tmp_path, nodes=1, **groups) as one:
        assert await call(http, one, row, address="192.0.2.7", content=b"") == (400, "body_invalid")
        assert await call(http, one, row, address="192.0.2.7") == (429, "rate_limited")
        assert await call(http, one, row, address="192.0.2.8", content=b"") == (400, "body_invalid")


@of(SIGNED_IN)
async def test_a_device_that_calls_too_often_is_told_to_wait(http, eager, row):
    node, device = eager
    assert await call(http, node, row, device) == (429, "rate_limited")


# ---- what is sent ---------------------------------------------------------------------------------------------------


@of(TAKING)
async def test_a_body_is_exactly_what_the_operation_takes(http, node, device, row):
    good = example(inspect.type_info(row.takes))
    for body in ([], good | {"more": 1}, {"more": 1}):
        assert await call(http, node, row, device, content=msgspec.json.encode(body)) == (400, "body_invalid")
    short = await call(http, node, row, device, content_type="text/plain")
    assert short == (415, "content_type_invalid")
    assert await call(http, node, row, device, content=b" " * (MOST + 1)) == (413, "body_too_large")


@of([row for row in ROWS if row.query is not None])
async def test_a_query_is_exactly_what_the_operation_takes(http, node, device, row):
    assert await call(http, node, row, device, query="?more=1") == (400, "query_invalid")


@of(REPEATABLE)
async def test_the_name_of_an_act_is_one_readable_header(http, node, device, row):
    for name in ("", "x" * 129):
        refused = await call(http, node, row, device, idempotency_key=name)
        assert refused == (400, "idempotency_key_invalid")


@of(REPEATABLE)
async def test_the_name_of_an_act_is_of_one_request(http, node, device, row):
    """Two others have names already: one was carried out, one runs."""
    ((person_id,),) = await node.sql("SELECT person_id FROM devices WHERE id = %s", device.device_id)
    add = (
        "INSERT INTO idempotency_keys (person_id, device_id, key, request_hash, made_id, expires_at)"
        " VALUES (%s, %s, %s, sha256(''), gen_random_uuid(), now() + interval '1 hour')"
    )
    done, running = uuid4().hex, uuid4().hex
    await node.sql(add, person_id, device.device_id, done)
    assert await call(http, node, row, device, idempotency_key=done) == (422, "idempotency_mismatch")
    url = node.settings.database.url.get_secret_value()
    async with await psycopg.AsyncConnection.connect(url) as other:
        await other.execute(add, [person_id, device.device_id, running])
        assert await call(http, node, row, device, idempotency_key=running) == (409, "idempotency_running")
        await other.rollback()


# ---- the database ---------------------------------------------------------------------------------------------------


def signed(row: Operation, device: FakeDevice) -> bytes | None:
    """A body whose signature is good, where that is judged before anything is looked up."""
    if row.name != "begin_device_login":
        return None
    keys = device.signing_key.public_key().public_bytes_raw(), device.channel_key.public_key().public_bytes_raw()
    signature = sign(device.signing_key, Purpose.DEVICE_ASK, ORIGIN, *keys, "laptop")
    body = {"name": "laptop", "signing_key": keys[0], "channel_key": keys[1], "signature": signature}
    return msgspec.json.encode(body)


async def test_without_the_database_every_operation_says_so(http, node, device):
    rows = [row for row in ROWS if 503 in row.all_refusals()]
    async with node.outage():
        found = {row.name: await call(http, node, row, device, content=signed(row, device)) for row in rows}
    assert found == dict.fromkeys(found, (503, "unavailable"))
    assert len(found) > 30
