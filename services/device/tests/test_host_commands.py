"""The commands of owners and operators, run as a person or a script runs them."""

import json
from datetime import UTC, datetime, timedelta

import pytest


def one_line(err):
    assert err.startswith("bothy: ")
    assert err.count("\n") == 1
    return err


def asked(relay, path):
    """The only body that was posted there, and that it was confirmed by this device for this act."""
    ((_, _, body, _),) = relay.requests_of("POST", path)
    assert body.pop("step_up_id")
    return body


async def test_a_host_is_added_with_its_code(login, bothy, relay):
    status, out, err = await bothy("hosts", "add", "lab-2", "--owner", "Sam")
    assert (status, err) == (0, "")
    assert out.decode() == (
        "pairing code for lab-2, to be used once within 15 min:\n\n    AAAAA-BBBBB\n\n"
        f"On the machine: bothy-host pair {relay.origin}\n"
    )
    assert asked(relay, "/hosts") == {"name": "lab-2", "owner": "Sam"}
    assert relay.wanted == {"purpose": "manage_host", "host_id": relay.hosts[1]["host_id"]}
    _, out, _ = await bothy("hosts", "add", "lab-3", "--json")
    made = json.loads(out)
    assert made == {"host_id": relay.hosts[2]["host_id"], "name": "lab-3", "code": "AAAAA-BBBBB", "expires_in_s": 900}


async def test_a_code_for_a_host_that_is_paired_is_asked_about(login, bothy, sit, relay):
    relay.hosts.append(relay.host_row(host_id=str(relay.person_id), name="lab-2", state="pending", fingerprint=None))
    status, out, _ = await bothy("hosts", "code", "lab-2")
    assert (status, b"AAAAA-BBBBB" in out) == (0, True)
    relay.requests.clear()
    status, out, err = await bothy("hosts", "code", "lab-1")
    assert (status, out) == (1, b"")
    assert one_line(err) == (
        "bothy: a new code makes the key of lab-1 void and ends its sessions, at once; --yes does it\n"
    )
    person = sit("hosts", "code", "lab-1")
    await person.until(b"Go on? [y/N]: ")
    await person.type(b"n\r")
    assert await person.ended() == 130
    assert relay.requests_of("POST", "/pairing-codes") == []
    status, out, _ = await bothy("hosts", "code", "lab-1", "--yes", "--json")
    assert (status, json.loads(out)["code"]) == (0, "AAAAA-BBBBB")


async def test_a_code_that_was_shown_before_is_not_printed(login, bothy, relay):
    relay.pairing_code = "already_issued"
    status, out, err = await bothy("hosts", "code", "lab-1", "--yes")
    assert (status, out) == (1, b"")
    assert "the answer was lost; run bothy hosts code" in one_line(err)


async def test_a_host_is_disabled_enabled_and_retired(login, bothy, sit, relay):
    for word, state in (("disable", "disabled"), ("enable", "active")):
        status, out, err = await bothy("hosts", word, "lab-1")
        assert (status, out.decode(), err) == (0, f"lab-1 is {state}\n", "")
    status, _, err = await bothy("hosts", "retire", "lab-1")
    assert (status, one_line(err)) == (1, "bothy: lab-1 ends for good, and its sessions with it; --yes does it\n")
    person = sit("hosts", "retire", "lab-1")
    await person.until(b"Retire it? [y/N]: ")
    assert relay.hosts[0]["state"] == "active"
    await person.type(b"y\r")
    await person.until(b"lab-1 is retired")
    assert await person.ended() == 0
    assert json.loads((await bothy("hosts", "retire", "lab-1", "--yes", "--json"))[1])["state"] == "retired"


async def test_a_host_is_renamed(login, bothy, relay):
    status, out, _ = await bothy("hosts", "rename", "lab-1", "lab\x07-2")
    assert (status, out) == (0, b"lab-1 is called lab -2\n"), "a name steers no terminal"
    assert json.loads((await bothy("hosts", "rename", str(relay.host_id), "lab-3", "--json"))[1])["name"] == "lab-3"


async def test_a_grant_is_given_for_a_time_and_taken_away(login, bothy, relay):
    status, out, err = await bothy("hosts", "grant", "lab-1", "Sam", "--user", "alex", "--until", "8h")
    assert (status, err) == (0, "")
    assert out.startswith(b"Sam may open terminals on lab-1 as alex, until 20")
    body = asked(relay, "/grants")
    ends = datetime.fromisoformat(body.pop("expires_at"))
    assert timedelta(hours=7) < ends - datetime.now(UTC) <= timedelta(hours=8)
    assert body == {"person": "Sam", "session_user": "alex"}
    _, out, _ = await bothy("hosts", "grant", "lab-1", "Robin", "--user", "alex", "--json")
    assert (json.loads(out)["person_name"], json.loads(out)["expires_at"]) == ("Robin", None)
    _, out, _ = await bothy("hosts", "grants", "lab-1")
    sam, robin = (line.split("\t") for line in out.decode().splitlines())
    assert (sam[1:3], robin[1:]) == (["Sam", "alex"], ["Robin", "alex", ""])
    status, out, _ = await bothy("hosts", "revoke-grant", "lab-1", "Sam", "--user", "alex")
    assert (status, out) == (0, b"Sam holds no grant on lab-1 for alex any more\n")
    assert asked(relay, "/grants/revoke") == {"person": "Sam", "session_user": "alex"}
    _, out, _ = await bothy("hosts", "revoke-grant", "lab-1", "Robin", "--json")
    assert json.loads(out) == []
    assert json.loads((await bothy("hosts", "grants", "lab-1", "--json"))[1]) == []


async def test_owners_are_listed_and_changed(login, bothy, relay):
    _, out, _ = await bothy("hosts", "owners", "lab-1", "--add", "Sam")
    assert out.decode() == f"{relay.person_id}\tSam\t2026-01-02T03:04:05Z\tdisabled\n"
    assert asked(relay, "/owners") == {"person": "Sam"}
    _, out, _ = await bothy("hosts", "owners", "lab-1", "--json")
    assert [each["person_name"] for each in json.loads(out)] == ["Sam"]
    status, out, _ = await bothy("hosts", "owners", "lab-1", "--remove", "Sam", "--json")
    assert (status, json.loads(out)) == (0, [])
    relay.refusals[f"/hosts/{relay.host_id}/owners"] = (404, "host_unknown", {})
    status, _, _ = await bothy("hosts", "owners", "lab-1", "--remove", "Alex")
    assert status == 0, "their own"
    status, _, err = await bothy("hosts", "owners", "lab-1")
    assert (status, "there is no such host" in one_line(err)) == (1, True)


@pytest.mark.parametrize(
    ("words", "path", "code", "told"),
    [
        (["add", "lab-1"], "/hosts", "host_exists", "a host of that name already"),
        (["add", "lab-2"], "/step-up/challenges", "operator_required", "only an operator of the relay"),
        (["grant", "lab-1", "Sam", "--user", "alex"], "/grants", "person_unknown", "there is no such person"),
        (["grant", "lab-1", "Sam", "--user", "alex"], "/grants", "owner_required", "only an owner of the host"),
        (["grant", "lab-1", "Sam", "--user", "alex"], "/grants", "person_without_device", "they never signed in"),
        (["revoke-grant", "lab-1", "Sam"], "/grants/revoke", "grant_unknown", "there is no such grant"),
        (["owners", "lab-1", "--remove", "Sam"], "/owners/remove", "last_owner", "add another owner first"),
        (["owners", "lab-1", "--remove", "Sam"], "/owners/remove", "owner_unknown", "no owner of the host"),
        (["enable", "lab-1"], "/state", "host_state_conflict", "told"),
    ],
)
async def test_a_refusal_says_what_to_do(login, bothy, relay, words, path, code, told):
    full = path if path in {"/step-up/challenges", "/hosts"} else f"/hosts/{relay.host_id}{path}"
    relay.refusals[full] = (409, code, {})
    status, out, err = await bothy("hosts", *words)
    assert (status, out) == (1, b"")
    assert told in one_line(err)


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["grant", "lab-1", "Sam"], 2, "Missing option '--user'"),
        (["grant", "lab-1", "Sam", "--user", "alex", "--until", "soon"], 1, "'soon' is no end that can be read"),
        (["grant", "lab-1", "Sam", "--user", "alex", "--until", "2020-01-01"], 1, "has passed"),
        (["disable", "lab-9"], 1, "there is no host 'lab-9'"),
        (["disable"], 2, "Missing argument 'HOST'"),
    ],
)
async def test_what_is_written_wrongly_asks_for_nothing(login, bothy, relay, words, status, told):
    exit_status, out, err = await bothy("hosts", *words)
    assert (exit_status, out) == (status, b"")
    assert told in one_line(err)
    assert relay.requests_of("POST", "/step-up") == []
