"""REST of passkeys on a real node, with a software authenticator: shapes, refusals, and what they make of a browser."""

import base64
from uuid import UUID, uuid4

import pytest
import pytest_asyncio

from bothy_kit.authenticator import Authenticator, b64url
from bothy_kit.cluster import ORIGIN, cluster
from bothy_kit.fake_browser import FakeBrowser, credential
from bothy_kit.fake_device import b64

pytestmark = pytest.mark.asyncio(loop_scope="module")
NODE_SETTINGS = {"identity": {"max_passkeys": 2}}
UNKNOWN = "0199aaaa-0000-7000-8000-00000000000a"


@pytest_asyncio.fixture(loop_scope="module")
async def invited(node):
    """A new person's browser that an invite let in, without a passkey."""
    async with FakeBrowser(ORIGIN, node.nodes[0].url) as browser:
        invited = await node.admin.people.add(f"Robin-{uuid4().hex[:8]}", is_operator=False)
        browser.person_name = invited.name
        assert (await browser.redeem(invited.code)).status == 201
        assert (await browser.login()).status == 200
        yield browser


@pytest_asyncio.fixture(loop_scope="module")
async def browser(invited):
    """The same with one."""
    assert (await invited.add_passkey()).status == 201
    return invited


@pytest_asyncio.fixture(loop_scope="module")
async def another(node, browser):
    """Another browser of the same person, with the same authenticator, not signed in."""
    async with FakeBrowser(ORIGIN, node.nodes[0].url, browser.authenticator) as other:
        yield other


async def sql(node, browser, statement):
    await node.sql(statement, browser.device_id)


# ---- a person's own -------------------------------------------------------------------------------------------------


async def test_options_are_those_that_a_browser_takes(browser):
    made = await browser.rest("POST", "/passkeys/challenge", {})
    assert (made.status, set(made.body), made.body["expires_in_s"]) == (201, {"options", "expires_in_s"}, 300)
    options = made.body["options"]
    (held,) = browser.authenticator.credentials
    assert len(options.pop("challenge")) == 43
    assert options == {
        "timeout": 300_000,
        "user": {"id": b64url(held.user_handle), "name": browser.person_name, "displayName": browser.person_name},
        "excludeCredentials": [{"id": b64url(held.id), "type": "public-key"}],
        "rp": {"name": "bothy"},
        "pubKeyCredParams": [{"alg": alg, "type": "public-key"} for alg in (-8, -7, -257)],
        "authenticatorSelection": {
            "residentKey": "required",
            "requireResidentKey": True,
            "userVerification": "required",
        },
        "attestation": "none",
    }


async def test_a_passkey_is_added_listed_and_removed(invited):
    added = await invited.add_passkey(name="telephone")
    assert (added.status, set(added.body)) == (201, {"passkey_id", "name", "backed_up", "created_at", "last_used_at"})
    assert UUID(added.body["passkey_id"]).version == 7
    listed = await invited.rest("GET", "/passkeys")
    assert (listed.status, listed.body) == (200, {"passkeys": [added.body]})
    step_up_id = await invited.step_up("manage_account")
    path = f"/passkeys/{added.body['passkey_id']}/remove"
    removed = await invited.rest("POST", path, {"step_up_id": step_up_id})
    assert (removed.status, removed.body) == (200, {"passkeys": []})
    asked = await invited.rest("POST", "/step-up/challenges", {"purpose": "manage_account"})
    assert (asked.status, asked.code) == (401, "passkey_required")


async def test_a_request_sent_twice_adds_one(invited):
    body = invited.passkey_body(await invited.attestation())
    first, again = [await invited.rest("POST", "/passkeys", body, key="once") for _ in range(2)]
    assert (first.status, again.status, again.body) == (201, 201, first.body)
    other = await invited.rest("POST", "/passkeys", body | {"name": "another"}, key="once")
    assert (other.status, other.code) == (422, "idempotency_mismatch")


async def test_what_adds_no_passkey(browser):
    invalid = browser.passkey_body(Authenticator().create(ORIGIN, bytes(32), bytes(16)))
    unnamed = browser.passkey_body(await browser.attestation(), "\u00e9" * 33)
    for body, refused in ((invalid, (422, "passkey_invalid")), (unnamed, (422, "name_invalid"))):
        answer = await browser.rest("POST", "/passkeys", body)
        assert (answer.status, answer.code) == refused
    unconfirmed = await browser.add_passkey()
    assert (unconfirmed.status, unconfirmed.code) == (401, "step_up_required")
    taken = browser.authenticator.credentials[0].id
    made = await browser.rest("POST", "/passkeys/challenge", {})
    challenge = base64.urlsafe_b64decode(made.body["options"]["challenge"] + "=")
    same = Authenticator().create(ORIGIN, challenge, bytes(16), credential_id=taken)
    body = browser.passkey_body(same) | {"step_up_id": await browser.step_up("manage_account")}
    exists = await browser.rest("POST", "/passkeys", body)
    assert (exists.status, exists.code) == (409, "passkey_exists")
    assert (await browser.add_passkey(body["step_up_id"])).status == 201
    full = await browser.add_passkey(await browser.step_up("manage_account"))
    assert (full.status, full.code) == (409, "passkey_limit")


async def test_what_removes_no_passkey(browser):
    (passkey,) = (await browser.rest("GET", "/passkeys")).body["passkeys"]
    step_up_id = await browser.step_up("manage_account")
    for passkey_id, step_up, refused in (
        (passkey["passkey_id"], UNKNOWN, (401, "step_up_required")),
        (UNKNOWN, step_up_id, (404, "passkey_unknown")),
        (passkey["passkey_id"].upper(), step_up_id, (404, "passkey_unknown")),
    ):
        answer = await browser.rest("POST", f"/passkeys/{passkey_id}/remove", {"step_up_id": step_up})
        assert (answer.status, answer.code) == refused


@pytest.mark.parametrize(
    "spoil",
    [
        {"id": ""},
        {"id": b64(bytes(1024))},
        {"client_data": b64(bytes(4097))},
        {"attestation_object": b64(bytes(8193))},
        {"attestation_object": "_-_-"},
        {"type": "public-key"},
    ],
)
async def test_every_field_of_a_new_passkey_has_a_bound(invited, spoil):
    good = invited.passkey_body(await invited.attestation())
    answer = await invited.rest("POST", "/passkeys", good | {"credential": good["credential"] | spoil})
    assert (answer.status, answer.code) == (400, "body_invalid")


# ---- signing in -----------------------------------------------------------------------------------------------------


async def test_a_browser_signs_in_and_signs_in_again(another, browser):
    made = await another.rest("POST", "/auth/passkeys/challenge", {})
    assert (made.status, set(made.body), made.body["expires_in_s"]) == (201, {"options", "expires_in_s"}, 300)
    assert set(made.body["options"]) == {"challenge", "timeout", "allowCredentials", "userVerification"}
    assert (made.body["options"]["allowCredentials"], made.body["options"]["userVerification"]) == ([], "required")
    first = await another.passkey_login()
    assert (first.status, set(first.body)) == (
        201,
        {"device_id", "person_id", "person_name", "access_token", "expires_in_s"},
    )
    assert first.body["person_name"] == browser.person_name
    assert (await another.rest("GET", "/passkeys")).status == 200
    again = await another.passkey_login()
    assert again.body["device_id"] == first.body["device_id"]
    assert (await another.login()).status == 200


async def test_when_its_login_is_over_a_browser_is_told_to_sign_in(node, another):
    await another.passkey_login()
    await sql(node, another, "UPDATE devices SET login_until = now() WHERE id = %s")
    refused = await another.rest("GET", "/passkeys")
    assert (refused.status, refused.code) == (401, "sign_in_required")
    token, another.access_token = another.access_token, ""
    refreshed = await another.login()
    assert (refreshed.status, refreshed.code) == (401, "sign_in_required")
    another.access_token = token
    assert (await another.passkey_login()).status == 201
    assert (await another.rest("GET", "/passkeys")).status == 200


async def test_what_signs_nobody_in(node, another, browser):
    body = another.login_body(await another.login_challenge())
    wrong = body | {"credential": body["credential"] | {"signature": b64(bytes(70))}}
    unknown = body | {"credential": body["credential"] | {"id": b64(b"unknown")}}
    unsigned = body | {"device": body["device"] | {"signature": b64(bytes(64))}}
    answers = [await another.try_passkey_login(each) for each in (wrong, unknown, unsigned)]
    assert {(each.status, each.code, each.body["detail"]) for each in answers} == {
        (401, "login_refused", answers[0].body["detail"])
    }
    unnamed = body | {"device": body["device"] | {"name": "\u00e9" * 33}}
    refused = await another.try_passkey_login(unnamed)
    assert (refused.status, refused.code) == (422, "name_invalid")
    assert (await another.try_passkey_login(body)).status == 201
    assert (await another.try_passkey_login(body)).code == "login_refused"
    await sql(node, another, "UPDATE devices SET revoked_at = now() WHERE id = %s")
    revoked = await another.passkey_login()
    assert (revoked.status, revoked.code) == (409, "device_exists")


async def test_failed_logins_are_counted_and_never_held_against_who_is_right(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=1, identity={"attempt_rate": "2 per hour"}) as one:
        invited = await one.admin.people.add("Robin", is_operator=False)
        async with FakeBrowser(ORIGIN, one.nodes[0].url) as browser:
            await browser.redeem(invited.code)
            await browser.login()
            assert (await browser.add_passkey()).status == 201
            body = browser.login_body(await browser.login_challenge())
            wrong = body | {"device": body["device"] | {"signature": b64(bytes(64))}}
            refused = [(await browser.try_passkey_login(wrong)).code for _ in range(3)]
            assert refused == ["login_refused", "login_refused", "rate_limited"]
            assert (await browser.try_passkey_login(body)).status == 201


# ---- confirming -----------------------------------------------------------------------------------------------------


async def test_a_browser_confirms_with_a_passkey_and_nothing_else(browser):
    asked = await browser.rest("POST", "/step-up/challenges", {"purpose": "manage_account"})
    assert (asked.status, set(asked.body)) == (201, {"challenge", "expires_in_s", "passkey"})
    options = asked.body["passkey"]
    challenge = base64.b64decode(asked.body["challenge"])
    (held,) = browser.authenticator.credentials
    assert options == {
        "challenge": b64url(challenge),
        "timeout": 300_000,
        "allowCredentials": [{"id": b64url(held.id), "type": "public-key"}],
        "userVerification": "required",
    }
    answered = credential(browser.authenticator.get(ORIGIN, challenge))
    signed = {"challenge": asked.body["challenge"], "signature": b64(bytes(64))}
    proof = {"challenge": asked.body["challenge"], "credential": answered}
    for body, refused in (
        (signed, (401, "passkey_required")),
        (proof | signed, (422, "step_up_invalid")),
        ({"challenge": asked.body["challenge"]}, (422, "step_up_invalid")),
        (proof | {"credential": answered | {"signature": b64(b"x")}}, (401, "step_up_refused")),
    ):
        answer = await browser.rest("POST", "/step-up", body)
        assert (answer.status, answer.code) == refused
    confirmed = await browser.rest("POST", "/step-up", proof)
    assert (confirmed.status, set(confirmed.body)) == (201, {"step_up_id", "expires_in_s"})


@pytest.mark.parametrize(
    "spoil",
    [
        {"authenticator_data": b64(bytes(2049))},
        {"signature": b64(bytes(1025))},
        {"user_handle": b64(bytes(65))},
        {"user_handle": ""},
        {"raw_id": b64(b"x")},
    ],
)
async def test_every_field_of_an_answer_has_a_bound(another, spoil):
    body = another.login_body(await another.login_challenge())
    answer = await another.try_passkey_login(body | {"credential": body["credential"] | spoil})
    assert (answer.status, answer.code) == (400, "body_invalid")
