"""Browsers and passkeys over several nodes: one use of an answer wherever it lands, a terminal, and nothing of it in a log."""

import asyncio
import base64
import itertools
import logging
import re
from uuid import UUID

import pytest

import openapi
from bothy_kit.authenticator import b64url
from bothy_kit.cluster import ORIGIN, cluster
from bothy_kit.fake_browser import FakeBrowser, credential, raw
from bothy_server.platform.operations import operations_of

NOTHING = str(UUID(int=1))


@pytest.fixture
async def two(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=2) as running:
        yield running


@pytest.fixture
async def browser(two):
    """Robin's browser, let in by an invite, with a passkey."""
    invited = await two.admin.people.add("Robin", is_operator=False)
    async with FakeBrowser(ORIGIN, two.nodes[0].url) as made:
        assert (await made.redeem(invited.code)).status == 201
        assert (await made.login()).status == 200
        assert (await made.add_passkey()).status == 201
        yield made


async def at_both(two, attempt):
    """The same on each node at once; the answers, the one that won first."""
    answers = await asyncio.gather(*(attempt(each.url) for each in two.nodes))
    return sorted(answers, key=lambda answer: answer.status)


async def test_one_answer_signs_in_once_over_two_nodes(two, browser):
    async with FakeBrowser(ORIGIN, two.nodes[1].url, browser.authenticator) as other:
        for _ in range(5):
            body = other.login_body(await other.login_challenge())
            won, lost = await at_both(two, lambda url, body=body: other.try_passkey_login(body, url=url))
            assert (won.status, lost.status, lost.code) == (201, 401, "login_refused")
    logins = await two.sql("SELECT count(*) FROM audit_log WHERE action = 'device.login'")
    copies = await two.sql("SELECT count(*) FROM audit_log WHERE action = 'attempt.refused'")
    assert (logins, copies) == ([(5,)], [(0,)])


async def test_one_answer_confirms_once_over_two_nodes(two, browser):
    for _ in range(5):
        asked = await browser.rest("POST", "/step-up/challenges", {"purpose": "manage_account"})
        answered = browser.authenticator.get(ORIGIN, base64.b64decode(asked.body["challenge"]))
        proof = {"challenge": asked.body["challenge"], "credential": credential(answered)}
        won, lost = await at_both(two, lambda url, proof=proof: browser.rest("POST", "/step-up", proof, url=url))
        assert (won.status, lost.status, lost.code) == (201, 401, "step_up_refused")


async def test_a_browser_opens_a_terminal_with_a_passkey(two, browser):
    host = await two.host(owner="Robin")
    await host.connect(two.nodes[1].url)
    stream = await browser.open(host.host_id)
    assert (await browser.state(stream.session_id))["state"] == "opening"
    ((method,),) = await two.sql("SELECT DISTINCT method FROM step_ups WHERE consumed_at IS NOT NULL")
    assert method == "passkey"


async def test_a_login_is_over_on_every_node_and_for_every_operation_at_once(two, browser):
    await two.sql("UPDATE devices SET login_until = now() WHERE kind = 'browser'")
    acts = [row for kind in openapi.adapters() for row, _ in operations_of(kind) if row.signed_in]
    assert len(acts) > 20
    for row, node in zip(acts, itertools.cycle(two.nodes), strict=False):
        path = re.sub(r"\{\w+\}", NOTHING, row.path).removeprefix("/api/v1")
        refused = await browser.rest(row.method, path, {} if row.takes else None, url=node.url)
        assert (refused.status, refused.code) == (401, "sign_in_required"), row.name


async def test_no_log_holds_anything_of_a_passkey(two, browser, caplog):
    for name in ("bothy_server", "uvicorn", "websockets.server"):
        caplog.set_level(logging.DEBUG, name)
    await browser.add_passkey(await browser.step_up("manage_account"))
    challenge = await browser.login_challenge()
    body = browser.login_body(challenge)
    spoilt = body | {"credential": body["credential"] | {"signature": "AAAA", "client_data": "e30="}}
    assert (await browser.try_passkey_login(spoilt)).status == 401
    assert (await browser.try_passkey_login(body)).status == 201
    keys = [each for (each,) in await two.sql("SELECT public_key FROM passkeys")]
    # Faults are logged with what the database said of the statement.
    for column in ("last_used_at", "public_key"):
        await two.sql(f"ALTER TABLE passkeys DROP COLUMN {column}")
        assert (await browser.passkey_login()).status == 500
    said = "\n".join(f"{each.getMessage()} {vars(each)}" for each in caplog.records)
    assert "last_used_at" in said
    assert "public_key" in said
    secrets = [raw for held in browser.authenticator.credentials for raw in (held.id, held.user_handle)]
    for secret in [*keys, *secrets, challenge, *(base64.b64decode(each) for each in body["credential"].values())]:
        for text in (secret.hex(), b64url(secret), base64.b64encode(secret).decode(), str(secret)):
            assert text not in said


async def test_rows_hold_a_challenge_as_its_hash_alone(two, browser):
    made = await browser.rest("POST", "/passkeys/challenge", {})
    login = await browser.login_challenge()
    stored = str(await two.sql("SELECT c::text FROM challenges c"))
    for challenge in (raw(made.body["options"]["challenge"]), login):
        assert challenge.hex() not in stored
