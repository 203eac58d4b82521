"""Limits and repeats hold over all nodes, also for what comes at once; only calls by address are each node's own."""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from itertools import cycle
from uuid import UUID

import httpx2 as httpx
import pytest

from bothy_kit.cluster import ORIGIN, cluster
from bothy_kit.eventually import eventually
from bothy_kit.fake_device import Stream
from bothy_kit.fake_host import FakeHost
from bothy_kit.sockets import PATIENCE_S
from bothy_wire.frames import HostSessionOpen
from bothy_wire.ids import SessionId

PATIENT = {"lock_timeout": PATIENCE_S}
"""Twenty requests that wait for one another on a slow machine are no fault."""
UNKNOWN_DEVICE = "0199aaaa-0000-7000-8000-00000000000a"


@asynccontextmanager
async def two_nodes(database_url, folder, **groups):
    async with cluster(database_url, folder, nodes=2, database=PATIENT, **groups) as made:
        yield made


@pytest.fixture
async def two(database_url, tmp_path):
    async with two_nodes(database_url, tmp_path) as made:
        yield made


def counted(answers):
    return Counter((each.status, each.code if each.status >= 400 else "") for each in answers)


async def open_at_once(made, devices, hosts, times):
    """So many opens in one moment, each with a step-up of its own, on the nodes in turn."""
    wanted = []
    for _, device, host, running in zip(range(times), cycle(devices), cycle(hosts), cycle(made.nodes), strict=False):
        act = {"host_id": str(host.host_id), "profile": "shell", "session_user": "alex-shell"}
        wanted.append((device, {**act, "step_up_id": await device.step_up("open", *act.values())}, running.url))
    return await asyncio.gather(
        *(device.rest("POST", "/terminal/sessions", body, url=url) for device, body, url in wanted)
    )


async def sharing(made, host, devices):
    """More persons who own the host."""
    for device in devices:
        await made.sql(
            "INSERT INTO host_owners (host_id, person_id) SELECT %s, person_id FROM devices WHERE id = %s"
            " ON CONFLICT DO NOTHING",
            host.host_id,
            device.device_id,
        )


# ---- sessions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", ["max_sessions_per_person", "max_sessions_per_host"])
async def test_twenty_opens_at_once_on_two_nodes_stay_within_the_bound(database_url, tmp_path, bound):
    async with two_nodes(database_url, tmp_path, terminal={bound: 5}) as made:
        device, host = await made.couple()
        await host.connect()
        if bound == "max_sessions_per_person":
            other = await made.host("lab-2", await person_of(made, device))
            await other.connect()
            devices, hosts = [device], [host, other]
        else:
            devices, hosts = [device, *[await made.device(f"Sam-{n}") for n in range(3)]], [host]
            await sharing(made, host, devices)
        answers = await open_at_once(made, devices, hosts, 20)
        assert counted(answers) == {(201, ""): 5, (429, "session_limit"): 15}
        assert all(0 < int(each.headers["Retry-After"]) <= 86400 for each in answers if each.status == 429)
        assert await made.sql("SELECT count(*) FROM terminal_sessions") == [(5,)]
        spent = await made.sql("SELECT count(*) FROM step_ups WHERE consumed_at IS NOT NULL")
        assert spent == [(5,)], "a refused open spends no step-up"


async def person_of(made, device):
    ((name,),) = await made.sql(
        "SELECT p.name FROM persons p JOIN devices d ON d.person_id = p.id WHERE d.id = %s", device.device_id
    )
    return name


async def test_the_rate_of_opens_is_a_persons_on_all_nodes_together(database_url, tmp_path):
    terminal = {"open_rate": "5 per hour", "max_sessions_per_person": 50, "max_sessions_per_host": 50}
    async with two_nodes(database_url, tmp_path, terminal=terminal) as made:
        device, host = await made.couple()
        await host.connect()
        phone = await made.another_device(await person_of(made, device))
        answers = await open_at_once(made, [device, phone], [host], 20)
        assert counted(answers) == {(201, ""): 5, (429, "rate_limited"): 15}
        waits = [int(each.headers["Retry-After"]) for each in answers if each.status == 429]
        assert all(3000 < wait <= 3600 for wait in waits)
        await made.sql("UPDATE terminal_sessions SET opened_at = opened_at - make_interval(secs => %s)", max(waits))
        assert counted(await open_at_once(made, [device, phone], [host], 7)) == {(201, ""): 5, (429, "rate_limited"): 2}


# ---- sent twice -----------------------------------------------------------------------------------------------------


async def test_an_open_sent_twice_at_once_to_two_nodes_opens_one_session(two):
    device, host = await two.couple()
    control = await host.connect()
    act = {"host_id": str(host.host_id), "profile": "shell", "session_user": "alex-shell"}
    body = {**act, "step_up_id": await device.step_up("open", *act.values())}
    sent = [device.rest("POST", "/terminal/sessions", body, url=each.url, key="one") for each in two.nodes * 4]
    answers = await asyncio.gather(*sent)
    assert counted(answers) == {(201, ""): 8}
    assert len({each.body["session_id"] for each in answers}) == 1
    assert len({each.body["stream_token"] for each in answers}) > 1
    await control.expect(HostSessionOpen)
    assert await two.sql("SELECT count(*) FROM terminal_sessions") == [(1,)]
    other = await device.rest("POST", "/terminal/sessions", {**body, "profile": "other"}, key="one")
    assert (other.status, other.code) == (422, "idempotency_mismatch")
    bad = await device.rest("POST", "/terminal/sessions", body, key="x" * 129)
    assert (bad.status, bad.code) == (400, "idempotency_key_invalid")


async def test_the_answer_to_a_repeat_opens_the_stream(two):
    device, host = await two.couple()
    await host.connect()
    act = {"host_id": str(host.host_id), "profile": "shell", "session_user": "alex-shell"}
    body = {**act, "step_up_id": await device.step_up("open", *act.values())}
    await device.rest("POST", "/terminal/sessions", body, url=two.nodes[0].url, key="one")
    again = await device.rest("POST", "/terminal/sessions", body, url=two.nodes[1].url, key="one")
    opened = again.body
    stream = Stream(SessionId(UUID(opened["session_id"])), opened["stream_token"], b"", opened["attach_seq"])
    await device.dial(stream, two.nodes[0].url)


async def test_an_attach_repeated_on_another_node_raises_nothing_and_gives_way_to_a_newer_one(two):
    device, host = await two.couple()
    await host.connect()
    act = {"host_id": str(host.host_id), "profile": "shell", "session_user": "alex-shell"}
    body = {**act, "step_up_id": await device.step_up("open", *act.values())}
    session = (
        f"/terminal/sessions/{(await device.rest('POST', '/terminal/sessions', body, key='open')).body['session_id']}"
    )
    first, again = [await device.rest("POST", f"{session}/attach", {}, url=each.url, key="one") for each in two.nodes]
    assert (first.status, first.body["attach_seq"]) == (again.status, again.body["attach_seq"]) == (200, 2)

    async def late():
        sent = [await device.rest("POST", f"{session}/attach", {}, key="one")]
        sent.append(await device.rest("POST", "/terminal/sessions", body, key="open"))
        return counted(sent)

    await device.rest("POST", f"{session}/attach", {})
    assert await late() == {(409, "replaced"): 2}
    await device.rest("POST", f"{session}/close", {})
    assert await late() == {(409, "session_closed"): 2}


async def test_a_host_and_its_code_are_made_once_and_the_code_is_shown_once(two):
    operator = await two.device()
    await two.sql("UPDATE persons SET is_operator = true")
    body = {"name": "lab-7", "step_up_id": await operator.step_up("manage_relay")}
    made = [await operator.rest("POST", "/hosts", body, url=each.url, key="host") for each in two.nodes]
    assert [each.status for each in made] == [201, 201]
    assert made[0].body == made[1].body
    host_id = made[0].body["host_id"]
    body = {"step_up_id": await operator.step_up("manage_host", host_id)}
    path = f"/hosts/{host_id}/pairing-codes"
    first, again = [await operator.rest("POST", path, body, url=each.url, key="code") for each in two.nodes]
    assert (first.status, again.status) == (201, 201)
    assert first.body["code"] != again.body["code"] == "already_issued"
    assert 0 < again.body["expires_in_s"] <= first.body["expires_in_s"]
    assert await two.sql("SELECT count(*) FROM pairing_codes") == [(1,)]


# ---- attempts -------------------------------------------------------------------------------------------------------


async def failed_login(device, device_id, url):
    """With a signature that nobody made."""
    asked = await device.rest("POST", "/auth/challenge", {"device_id": device_id}, url=url)
    proof = {"device_id": device_id, "challenge": asked.body["challenge"], "signature": "A" * 86 + "=="}
    return await device.rest("POST", "/auth/token", proof, url=url)


async def test_failed_logins_are_counted_over_all_nodes_and_lock_nobody_out(database_url, tmp_path):
    async with two_nodes(database_url, tmp_path, identity={"attempt_rate": "5 per hour"}) as made:
        device = await made.device()
        told = {}
        for device_id in (str(device.device_id), UNKNOWN_DEVICE):
            urls = [each.url for each in made.nodes * 5]
            answers = await asyncio.gather(*(failed_login(device, device_id, url) for url in urls))
            told[device_id] = counted(answers)
            assert all(0 < int(each.headers["Retry-After"]) <= 720 for each in answers if each.status == 429)
        assert told[str(device.device_id)] == {(401, "login_refused"): 5, (429, "rate_limited"): 5}
        assert told[UNKNOWN_DEVICE] == told[str(device.device_id)], "unknown and wrong are one answer"
        assert (await device.login()).status == 200
        entries = await made.sql(
            "SELECT code, subject_device_id::text FROM audit_log WHERE action = 'attempt.refused' ORDER BY position"
        )
        assert entries == [("login", str(device.device_id)), ("login", UNKNOWN_DEVICE)]


async def test_wrong_codes_and_confirmations_are_told_to_wait_and_right_ones_pass(database_url, tmp_path):
    async with two_nodes(database_url, tmp_path, identity={"attempt_rate": "5 per hour"}) as made:
        device, host = await made.couple()
        machine = FakeHost(ORIGIN, made.nodes[0].url)
        wrong = [await machine.pair("00000-00000-00000-00000-0000") for _ in range(7)]
        assert [each.status_code for each in wrong] == [401] * 5 + [429] * 2
        assert wrong[-1].json()["code"] == "rate_limited"
        assert 0 < int(wrong[-1].headers["Retry-After"]) <= 720
        assert (await host.pair(await made.code(host.host_id))).status_code == 201
        proof = {"challenge": "A" * 43 + "=", "signature": "A" * 86 + "=="}
        answers = [
            await device.rest("POST", "/step-up", proof, url=each.url)
            for each, _ in zip(cycle(made.nodes), range(7), strict=False)
        ]
        assert counted(answers) == {(401, "step_up_refused"): 5, (429, "rate_limited"): 2}
        await device.step_up("manage_host", host.host_id)


async def test_a_sweep_forgets_attempts_and_requests_whose_time_is_over(database_url, tmp_path):
    groups = {"terminal": {"sweep_interval": "50 ms"}, "identity": {"attempt_rate": "1 per hour"}}
    async with two_nodes(database_url, tmp_path, **groups) as made:
        device, host = await made.couple()
        await host.connect()
        stream = await device.open(host.host_id)
        await device.rest("POST", f"/terminal/sessions/{stream.session_id}/attach", {}, key="one")
        await failed_login(device, UNKNOWN_DEVICE, device.url)

        async def kept():
            return await made.sql("SELECT (SELECT count(*) FROM attempts), (SELECT count(*) FROM idempotency_keys)")

        async def forgotten():
            return await kept() == [(0, 0)]

        assert await kept() == [(1, 1)]
        await made.sql("UPDATE attempts SET whole_at = now() - interval '1 s'")
        await made.sql("UPDATE idempotency_keys SET expires_at = now() - interval '1 s'")
        await eventually(forgotten)


# ---- by address -----------------------------------------------------------------------------------------------------


@pytest.fixture
async def stranger():
    """A call that needs no login, with the entries of ``X-Forwarded-For`` that it comes with."""
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_S) as rest:

        def call(url, chain):
            body, headers = {"device_id": UNKNOWN_DEVICE}, {"X-Forwarded-For": chain}
            return rest.post(f"{url}/api/v1/auth/challenge", json=body, headers=headers)

        yield call


async def test_each_node_counts_calls_without_login_by_the_address_that_its_edge_tells(
    database_url, tmp_path, stranger
):
    groups = {
        "server": {"trusted_proxies": ["127.0.0.1"]},
        "identity": {"address_rate": "8 per hour"},
    }
    async with two_nodes(database_url, tmp_path, **groups) as made:
        one, other = (each.url for each in made.nodes)
        device = await made.device()
        forged = [await stranger(one, f"203.0.113.{n}, 198.51.100.1") for n in range(10)]
        assert [each.status_code for each in forged] == [200] * 8 + [429] * 2, "a forged entry is no fresh allowance"
        assert forged[-1].json()["code"] == "rate_limited"
        assert 0 < int(forged[-1].headers["Retry-After"]) <= 450
        assert (await stranger(one, "203.0.113.0")).status_code == 200, "and spends nobody else's"
        assert (await stranger(other, "198.51.100.1")).status_code == 200, "a node counts its own"
        same = [await stranger(one, f"2001:db8:0:1::{n}") for n in range(9)]
        assert [each.status_code for each in same] == [200] * 8 + [429]
        assert (await stranger(one, "2001:db8:0:2::1")).status_code == 200
        assert (await device.rest("GET", "/hosts", url=one)).status == 200, "who is signed in is not counted"


async def test_without_a_trusted_proxy_the_peer_counts_whatever_it_writes(database_url, tmp_path, stranger):
    async with two_nodes(database_url, tmp_path, identity={"address_rate": "8 per hour"}) as made:
        url = made.nodes[0].url
        statuses = [(await stranger(url, f"203.0.113.{n}")).status_code for n in range(10)]
        assert statuses == [200] * 8 + [429] * 2


async def test_a_stolen_device_that_calls_without_end_does_not_keep_its_person_from_revoking_it(database_url, tmp_path):
    async with two_nodes(database_url, tmp_path, identity={"device_rate": "5 per hour"}) as made:
        stolen = await made.device("Robin")
        kept = await made.another_device("Robin")
        while (await stolen.rest("GET", "/me")).status == 200:
            pass
        revoked = await kept.act("manage_account", f"/devices/{stolen.device_id}/revoke")
        assert revoked.status == 200
