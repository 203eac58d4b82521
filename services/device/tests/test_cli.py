"""The real program, run as a person or a script runs it."""

import asyncio
import json
import re
from uuid import uuid4

import pytest
from msgspec.structs import replace

from bothy_device.account import describe
from bothy_wire.signing import fingerprint

NEW = "SHA256:" + "b" * 43


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def one_line(err):
    assert err.startswith("bothy: ")
    assert err.count("\n") == 1
    return err


async def test_version(bothy):
    status, out, err = await bothy("--version")
    assert (status, err) == (0, "")
    assert out.startswith(b"bothy 0.")


async def test_login_says_who_you_are_and_makes_the_server_the_default(relay, bothy, home):
    status, out, err = await bothy("login", relay.origin, "--invite", "7qk3m-right", "--name", "laptop")
    assert (status, err) == (0, "")
    assert out.decode() == f"logged in at {relay.origin} as Alex; this device is called laptop\n"
    assert {each.name for each in home.iterdir()} == {"default", "servers"}
    status, out, _ = await bothy("hosts")
    assert (status, out) == (0, b"lab-1\tactive\tonline\tshell: alex\n")


async def test_the_code_may_come_from_standard_input(relay, bothy):
    status, _, err = await bothy("login", relay.origin, stdin=b"7qk3m-right\n")
    assert (status, err) == (0, "")
    assert relay.requests[0][2]["code"] == "7QK3MR1GHT"


async def test_a_second_login_would_lose_the_keys(relay, login, bothy):
    status, _, err = await bothy("login", relay.origin, "--invite", "7qk3m-right")
    assert status == 1
    assert "already logged in at" in one_line(err)
    assert relay.requests == []


@pytest.mark.parametrize(
    ("url", "code", "words"),
    [
        (None, "wrong", "the invite code is wrong, used or expired"),
        (None, "", "an invite code is needed"),
        (
            "http://127.0.0.1:1",
            "7qk3m-right",
            "cannot reach http://127.0.0.1:1: connection refused; is the address right, and is the relay running?",
        ),
        ("https://x:99999", "7qk3m-right", "'https://x:99999' is no address of a relay; one looks like https://"),
        ("ftp://x", "7qk3m-right", "is no address of a relay"),
    ],
)
async def test_a_login_that_fails_writes_nothing(relay, bothy, home, url, code, words):
    status, out, err = await bothy("login", url or relay.origin, stdin=code.encode())
    assert (status, out) == (1, b"")
    assert words in one_line(err)
    assert not home.exists()


async def test_without_a_login_every_command_says_how(bothy):
    for command in (
        ["hosts"],
        ["devices"],
        ["devices", "invite"],
        ["sessions"],
        ["open", "lab-1"],
        ["attach", "0190"],
        ["device", "show"],
        ["logout"],
    ):
        status, _, err = await bothy(*command)
        assert (status, one_line(err)) == (
            1,
            "bothy: not logged in: run bothy login URL with the invite code you were given\n",
        )


async def test_usage_is_one_line_and_status_2(bothy):
    status, _, err = await bothy("open")
    assert (status, one_line(err)) == (2, "bothy: Missing argument 'HOST'. (bothy open --help explains)\n")
    status, _, err = await bothy("opne")
    assert (status, one_line(err)[:30]) == (2, "bothy: No such command 'opne'.")
    status, _, err = await bothy()
    assert status == 2
    assert "Commands:" in err


async def test_the_help_lists_every_command_uncut(bothy):
    status, out, _ = await bothy("--help")
    assert status == 0
    listed = re.findall(r"^  ([a-z]+(?: [a-z-]+)?)  +[A-Z]", out.decode().split("Commands:")[1], re.MULTILINE)
    assert listed == [
        *("login", "logout", "hosts", "hosts trust", "hosts confirm", "hosts add", "hosts code", "hosts disable"),
        *("hosts enable", "hosts retire", "hosts rename", "hosts owners", "hosts grants", "hosts grant"),
        "hosts revoke-grant",
        *("open", "attach", "sessions", "close", "terminate"),
        *("devices", "devices invite", "devices approve", "devices revoke", "device show"),
    ]
    assert "..." not in out.decode().split("Commands:")[1]


async def test_an_unknown_setting_is_an_error(login, bothy, home):
    (home / "config.toml").write_text("[device]\npaste = 1\n")
    status, _, err = await bothy("hosts")
    assert status == 1
    assert "config.toml: Object contains unknown field `paste`" in one_line(err)


async def test_lists_for_programs(login, bothy, relay):
    _, out, _ = await bothy("hosts", "--json")
    (host,) = json.loads(out)
    assert (host["name"], host["fingerprint"]) == ("lab-1", fingerprint(relay.host_public))
    _, out, _ = await bothy("sessions", "--all", "--json")
    assert json.loads(out)[0]["session_id"] == str(relay.session_id)
    _, out, _ = await bothy("sessions")
    assert out.decode() == f"{relay.session_id}\tlab-1\tAlex on laptop\tshell as alex\tactive\t2026-01-02T03:04:05Z\n"


async def test_a_name_cannot_steer_the_terminal(login, bothy, relay):
    relay.hosts[0]["name"] = "lab\x1b]0;owned\x07\n1"
    _, out, _ = await bothy("hosts")
    assert out == b"lab ]0;owned 1\tactive\tonline\tshell: alex\n"


async def test_another_server(login, bothy, relay):
    status, _, err = await bothy("hosts", "--server", "https://other.example.com")
    assert (status, one_line(err)) == (
        1,
        "bothy: not logged in at https://other.example.com: run bothy login https://other.example.com\n",
    )
    status, _, _ = await bothy("hosts", "--server", relay.origin.upper())
    assert status == 0


async def test_device_show_has_the_line_for_a_host(login, bothy):
    _, out, _ = await bothy("device", "show")
    channel = fingerprint(login.channel.public_key().public_bytes_raw())
    assert out.decode().endswith(f"Line for a host's authorized_devices:\n{channel} laptop\n")
    assert fingerprint(login.signer.public_key().public_bytes_raw()) in out.decode()


def test_no_name_of_a_device_is_an_option_for_a_host(login):
    shown = describe(replace(login, device_name="laptop of\tAlex users=root"))
    assert shown.endswith(" laptop-of-Alex-users-root")


async def test_logout_forgets_the_keys(login, bothy, home, relay):
    status, out, _ = await bothy("logout")
    assert status == 0
    assert out.decode() == f"logged out at {relay.origin}; the device laptop is revoked\n"
    assert [each.name for each in home.rglob("*")] == ["servers"]
    assert relay.devices[0]["revoked_at"] is not None


async def test_logout_forgets_the_keys_also_while_the_relay_is_away(login, bothy, home, relay):
    relay.go_away()
    status, out, err = await bothy("logout")
    assert status == 0
    assert one_line(err).startswith(f"bothy: the relay was not told: cannot reach {relay.origin}")
    assert "the device laptop is still known there" in out.decode()
    assert "bothy devices revoke laptop" in out.decode()
    assert [each.name for each in home.rglob("*")] == ["servers"]


@pytest.mark.parametrize("code", ["device_revoked", "person_disabled", "login_refused"])
async def test_logout_of_a_device_that_is_known_no_more(login, bothy, home, relay, code):
    relay.refusals["/auth/token"] = (401, code, {})
    status, out, err = await bothy("logout")
    assert (status, err) == (0, "")
    assert out.decode() == f"logged out at {relay.origin}; the device laptop was known there no more\n"
    assert [each.name for each in home.rglob("*")] == ["servers"]


# ---- devices --------------------------------------------------------------------------------------------------------


async def test_the_devices_of_a_person_and_which_is_this_one(login, bothy, relay):
    relay.devices.append(relay.device_row(uuid4(), "lost\x1b[31m", revoked_at="2026-02-03T04:05:06Z"))
    status, out, _ = await bothy("devices")
    ids = [each["device_id"] for each in relay.devices]
    assert (status, out.decode().splitlines()) == (
        0,
        [
            f"{ids[0]}\tlaptop\tcli by invite\tnever\tthis one",
            f"{ids[1]}\tphone\tcli by invite\tnever\t",
            f"{ids[2]}\tlost [31m\tcli by invite\tnever\trevoked 2026-02-03T04:05:06Z",
        ],
    )
    _, out, _ = await bothy("devices", "--json")
    assert [each["device_id"] for each in json.loads(out)] == ids


@pytest.mark.parametrize("by", ["name", "id"])
async def test_a_device_is_revoked_by_its_name_or_the_beginning_of_its_id(login, bothy, relay, by):
    phone = relay.devices[1]
    status, out, err = await bothy("devices", "revoke", "phone" if by == "name" else phone["device_id"][:9].upper())
    assert (status, err) == (0, "")
    assert out.decode() == f"phone ({phone['device_id']}) is revoked; what ran on it has ended\n"
    assert relay.wanted == {"purpose": "manage_account"}
    status, _, err = await bothy("devices", "revoke", "phone")
    assert (status, one_line(err)) == (1, "bothy: 'phone' is revoked already; bothy devices lists yours\n")


async def test_a_device_that_is_none_or_several_is_not_revoked(login, bothy, relay):
    status, _, err = await bothy("devices", "revoke", "tablet")
    assert (status, one_line(err)) == (1, "bothy: 'tablet' is none of yours; bothy devices lists yours\n")
    relay.devices.append(relay.device_row(uuid4(), "phone"))
    status, _, err = await bothy("devices", "revoke", "phone")
    ids = ", ".join(each["device_id"] for each in relay.devices[1:])
    assert (status, one_line(err)) == (1, f"bothy: 'phone' means 2 devices, give more of the id of one: {ids}\n")
    assert {each["revoked_at"] for each in relay.devices} == {None}


async def test_the_device_at_hand_is_not_revoked_by_mistake(login, bothy, sit, relay):
    status, _, err = await bothy("devices", "revoke", "laptop")
    assert status == 1
    assert "laptop is the device you sit at" in one_line(err)
    assert err.endswith("; --yes does it\n")
    person = sit("devices", "revoke", "laptop")
    await person.until(b"Revoke it? [y/N]: ")
    await person.type(b"n\r")
    assert await person.ended() == 130
    assert relay.devices[0]["revoked_at"] is None
    status, out, err = await bothy("devices", "revoke", "laptop", "--yes")
    assert (status, out.startswith(b"laptop (")) == (0, True)
    assert one_line(err) == "bothy: note: that was this device; bothy logout forgets its keys\n"


async def test_an_invite_says_what_to_type_on_the_other_machine(login, bothy, relay):
    status, out, err = await bothy("devices", "invite")
    assert (status, err) == (0, "")
    assert out.decode() == (
        "invite for Alex, to be used once within 24 h:\n\n    AAAAA-BBBBB\n\n"
        f"On the other machine: bothy login {relay.origin}\n"
    )
    assert relay.wanted == {"purpose": "manage_account"}


async def test_close_by_the_beginning_of_the_id(login, bothy, relay):
    status, out, _ = await bothy("close", str(relay.session_id)[:6])
    assert (status, out) == (0, f"closed {relay.session_id}\n".encode())
    assert relay.session_state == "closed"


async def test_an_owner_lists_and_terminates_the_sessions_on_a_host(login, bothy, relay):
    _, out, _ = await bothy("sessions", "--host", "lab-1")
    assert out.decode().startswith(f"{relay.session_id}\tlab-1\tAlex on laptop\t")
    assert relay.requests[-1][1] == f"/hosts/{relay.host_id}/sessions?all=false"
    status, _, err = await bothy("terminate", "lab-1", "ff")
    assert status == 1
    assert one_line(err) == "bothy: no session on lab-1 begins with 'ff'; bothy sessions --host lab-1 lists them\n"
    status, out, _ = await bothy("terminate", "lab-1", str(relay.session_id)[:6])
    assert (status, out) == (0, f"terminated {relay.session_id}\n".encode())
    assert (relay.session_state, relay.close_reason) == ("closed", "closed_by_owner")


async def test_a_changed_key_opens_nothing_and_the_command_it_names_accepts_it(login, bothy, home, relay):
    (home / "known_hosts").write_text(f"{relay.origin} {relay.host_id} {NEW} lab-1\n")
    status, _, err = await bothy("open", "lab-1")
    assert status == 1
    shown = fingerprint(relay.host_public)
    assert f"THE KEY OF lab-1 HAS CHANGED: pinned {NEW}, shown now {shown}" in one_line(err)
    assert not [path for _, path, _, _ in relay.requests if path == "/terminal/sessions"]
    status, out, err = await bothy(*err.strip().rpartition(": bothy ")[2].split())
    assert (status, out.decode(), err) == (0, f"lab-1 is trusted with the key {shown}\n", "")
    assert shown in (home / "known_hosts").read_text()


async def test_trusting_another_key_than_the_server_shows_is_noted(login, bothy, relay):
    status, _, err = await bothy("hosts", "trust", "lab-1", NEW)
    assert status == 0
    assert err == f"bothy: note: the relay shows another key for it now: {fingerprint(relay.host_public)}\n"


async def test_an_owner_confirms_a_paired_host_and_trusts_its_key(login, bothy, home, relay):
    relay.hosts[0]["state"] = "pending"
    shown = fingerprint(relay.host_public)
    status, out, err = await bothy("hosts", "confirm", "lab-1", shown)
    assert (status, out.decode(), err) == (0, f"lab-1 is active, and trusted with the key {shown}\n", "")
    assert shown in (home / "known_hosts").read_text()


async def test_a_fingerprint_that_the_server_does_not_know_confirms_and_trusts_nothing(login, bothy, home, relay):
    relay.hosts[0]["state"] = "pending"
    status, out, _ = await bothy("hosts", "confirm", "lab-1", NEW)
    assert (status, out, relay.hosts[0]["state"]) == (1, b"", "pending")
    assert not (home / "known_hosts").exists()


async def test_attach_trusts_no_new_key_on_the_word_of_the_relay(login, bothy, home, relay):
    relay.session_state = "detached"
    status, _, err = await bothy("attach", str(relay.session_id))
    assert status == 1
    assert "is not known yet" in one_line(err)
    assert "bothy hosts trust" in one_line(err)
    assert not (home / "known_hosts").exists()


async def test_a_name_that_looks_the_same_is_the_same(login, bothy, home, relay):
    (home / "known_hosts").write_text(f"{relay.origin} {relay.session_id} {NEW} lab-1\n")
    relay.hosts[0]["name"] = "lab-1\u200b"
    status, _, err = await bothy("open", str(relay.host_id))
    assert status == 1
    assert "HAS CHANGED" in one_line(err)


async def test_words_of_the_relay_do_not_steer_the_terminal(login, bothy, home, relay):
    relay.hosts[0]["name"] = "lab\x1b]0;title\x07-1"
    status, out, _ = await bothy("hosts", "trust", str(relay.host_id), fingerprint(relay.host_public))
    assert status == 0
    assert b"\x1b" not in out
    assert b"\x07" not in out


async def test_the_relay_may_not_answer_for_another_host(login, bothy, home, relay):
    asked, relay.host_id = relay.host_id, uuid4()
    relay.hosts[0]["host_id"] = str(asked)
    relay.hosts[0]["channel_key"] = None
    status, _, err = await bothy("open", str(asked))
    assert status == 1
    assert "another host" in one_line(err)


async def test_a_key_that_only_the_opening_shows_is_checked_too(login, bothy, home, relay):
    (home / "known_hosts").write_text(f"{relay.origin} {relay.host_id} {NEW} lab-1\n")
    relay.hosts[0]["channel_key"] = None
    status, _, err = await bothy("open", "lab-1")
    assert status == 1
    assert "HAS CHANGED" in one_line(err)
    assert relay.session_state == "closed"


async def test_strict_host_keys(login, bothy, home, relay):
    (home / "config.toml").write_text("[device]\nstrict_host_keys = true\n")
    status, _, err = await bothy("open", "lab-1")
    assert status == 1
    assert "the key of lab-1 is not known yet" in one_line(err)
    status, _, err = await bothy("open", "lab-1", "--host-key", NEW)
    assert status == 1
    assert "nothing was opened" in one_line(err)


async def test_several_users_need_a_choice(login, bothy, relay):
    relay.hosts[0] |= {"profiles": {"shell": ["alex", "sam"]}, "session_users": []}
    status, _, err = await bothy("open", "lab-1")
    assert status == 1
    assert one_line(err) == (
        "bothy: lab-1 offers several, choose one: --profile shell --user alex, --profile shell --user sam\n"
    )


async def test_an_ambiguous_host(login, bothy, relay):
    relay.hosts.append(relay.host_row(host_id=str(uuid4())))
    status, _, err = await bothy("open", "lab-1")
    assert status == 1
    assert "2 hosts are called 'lab-1'" in one_line(err)


@pytest.mark.parametrize("code", ["host_unavailable", "right_missing", "session_limit"])
async def test_a_refused_opening_is_one_line(login, bothy, relay, code):
    relay.refusals["/terminal/sessions"] = (409, code, {})
    status, _, err = await bothy("open", "lab-1")
    assert status == 1
    one_line(err.split("\n", 1)[1])


async def test_tables_on_a_terminal(sit, relay):
    person = sit("hosts")
    assert await person.ended() == 0
    assert plain(person.text()).splitlines()[:2] == [
        "NAME   STATE   PRESENCE  PROFILES   ",
        "lab-1  active  online    shell: alex",
    ]
    person = sit("sessions")
    assert await person.ended() == 0
    assert str(relay.session_id) in person.text()


async def test_the_prompt_for_the_code(relay, sit, bothy, home):
    await bothy("logout")
    person = sit("login", relay.origin)
    await person.until(b"Invite code: ")
    await person.type(b"7qk3m-right\n")
    assert await person.ended() == 0
    assert f"logged in at {relay.origin} as Alex" in person.text()


async def test_ctrl_c_at_the_prompt(relay, sit, bothy):
    await bothy("logout")
    person = sit("login", relay.origin)
    await person.until(b"Invite code: ")

    async def press():
        # Python loses a signal that comes just before its read; a person presses again.
        while b"bothy: interrupted" not in person.screen:
            await person.type(b"\x03")
            await asyncio.sleep(0.1)

    pressing = asyncio.create_task(press())
    assert await person.ended() == 130
    await pressing
    assert "bothy: interrupted" in person.text()
    assert person.settings() == person.before
