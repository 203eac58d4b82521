"""Passkeys in a real Chromium: its WebCrypto, its WebAuthn and a virtual authenticator of its own, against real nodes."""

import socket
from base64 import b64encode
from pathlib import Path

import httpx2 as httpx
import pytest
from playwright.async_api import Error

from bothy_kit import cluster as kit
from bothy_kit.browser import chromium
from bothy_server.platform.setting_values import Address
from bothy_wire.codes import code_hash

PAGE = (Path(__file__).parent / "page.js").read_text()


@pytest.fixture
async def two(database_url, tmp_path):
    """Two nodes at ``localhost``; only the first one's address is an origin of the relay."""
    ports = [free_port(), free_port()]
    left = list(ports)

    async def start(made):
        listen = made.server.model_copy(update={"listen": Address("127.0.0.1", left.pop(0))})
        return await kit.start(made.model_copy(update={"server": listen}))

    origins = {"public_origins": [kit.ORIGIN, f"http://localhost:{ports[0]}"]}
    async with kit.cluster(database_url, tmp_path, nodes=2, start=start, server=origins) as running:
        for node, port in zip(running.nodes, ports, strict=True):
            node.url = f"http://localhost:{port}"
        yield running


@pytest.fixture
async def page(tmp_path):
    """A page with a virtual authenticator."""
    async with chromium(tmp_path / "profile", bypass_csp=True) as opened:
        yield opened.page


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def visit(page, url):
    """Any answer of a node is a page of its origin."""
    await page.goto(f"{url}/.well-known/jwks.json")
    await page.evaluate(PAGE)


async def invited_with_passkey(two, page):
    """The page's device is Robin's by an invite, and has a passkey."""
    code = (await two.admin.people.add("Robin", is_operator=False)).code
    script = """async ([code, hash]) => {
        const device = (window.first = await bothy.Device.make("first"));
        return [await device.redeem(code, hash), await device.login(), await device.addPasskey("built in")];
    }"""
    answers = await page.evaluate(script, [code, b64encode(code_hash(code)).decode()])
    assert [each["status"] for each in answers] == [201, 200, 201], answers
    return answers[2]["body"]


async def test_a_browser_adds_a_passkey_signs_in_confirms_and_opens_a_terminal(two, page):
    await visit(page, two.nodes[0].url)
    passkey = await invited_with_passkey(two, page)
    assert (passkey["name"], passkey["last_used_at"]) == ("built in", None)

    login = await page.evaluate('async () => (window.second = await bothy.Device.make("second")).passkeyLogin()')
    assert (login["status"], login["body"]["person_name"]) == (201, "Robin")
    again = await page.evaluate("() => second.passkeyLogin()")
    assert (again["status"], again["body"]["device_id"]) == (201, login["body"]["device_id"])
    assert (await page.evaluate("() => second.login()"))["status"] == 200

    host = await two.host(owner="Robin")
    await host.connect(two.nodes[0].url)
    act = {"host_id": str(host.host_id), "profile": "shell", "session_user": "alex-shell"}
    confirmed = await page.evaluate("(act) => second.stepUp(act)", {"purpose": "open", **act})
    assert confirmed["status"] == 201, confirmed
    wanted = act | {"step_up_id": confirmed["body"]["step_up_id"]}
    opened = await page.evaluate('(wanted) => second.rest("POST", "/terminal/sessions", wanted)', wanted)
    assert opened["status"] == 201, opened
    repeated = await page.evaluate('(wanted) => second.rest("POST", "/terminal/sessions", wanted)', wanted)
    assert (repeated["status"], repeated["body"]["code"]) == (401, "step_up_required")
    assert await two.sql("SELECT count(*), max(sign_count) > 1 FROM passkeys") == [(1, True)]


async def test_an_authenticator_that_holds_a_passkey_makes_no_second_one(two, page):
    await visit(page, two.nodes[0].url)
    await invited_with_passkey(two, page)
    with pytest.raises(Error, match="InvalidStateError"):
        await page.evaluate('() => first.addPasskey("again")')


async def test_a_page_of_the_same_host_that_is_not_the_relays_signs_nobody_in(two, page):
    """To a browser, all ports of a host are one relying party: only the server sees that the page was another one's."""
    await visit(page, two.nodes[0].url)
    await invited_with_passkey(two, page)
    async with httpx.AsyncClient(trust_env=False, base_url=f"{two.nodes[0].url}/api/v1") as rest:

        async def options():
            return (await rest.post("/auth/passkeys/challenge", json={})).json()["options"]

        script = "async ([options, relay]) => (await bothy.Device.make('browser', relay)).loginBody(options)"
        ours = await page.evaluate(script, [await options(), two.nodes[0].url])
        await visit(page, two.nodes[1].url)
        stolen = await page.evaluate(script, [await options(), two.nodes[0].url])
        refused = await rest.post("/auth/passkeys/login", json=stolen)
        assert (refused.status_code, refused.json()["code"]) == (401, "login_refused")
        assert (await rest.post("/auth/passkeys/login", json=ours)).status_code == 201
