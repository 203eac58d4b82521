"""Signals carry ids and cause nothing that the committed rows do not allow; what is spent is spent for all nodes."""

import asyncio
import base64
import json
from uuid import uuid4

import pytest

from bothy_kit.cluster import ORIGIN, cluster
from bothy_kit.ear import ear
from bothy_kit.eventually import eventually
from bothy_kit.fake_host import FakeHost
from bothy_server.wiring import SIGNALS
from bothy_wire.frames import HostSessionClose, HostSessionOpen, HostSessionRecorded, SidePaired, SideUnpaired

BACKENDS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'bothy-terminal-ephemeral' AND datname = current_database()"


@pytest.fixture
async def two(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=2) as running:
        yield running


async def whole_life(made, device, host):
    """Open, pair, start, lose the device, attach, close; the streams that were opened."""
    control = await host.connect(made.nodes[-1].url)
    stream = await device.open(host.host_id)
    await control.expect(HostSessionOpen)
    url = made.nodes[0].url
    client, data = await device.dial(stream, url), await host.dial(stream.session_id, url)
    for side in (client, data):
        await side.expect(SidePaired)
    await host.started(stream.session_id)
    await control.expect(HostSessionRecorded)
    client.cut()
    await data.expect(SideUnpaired)
    again = await device.attach(stream.session_id)
    assert (await device.rest("POST", f"/terminal/sessions/{stream.session_id}/close", {})).status == 200
    assert (await data.closed()).code == 4100
    return stream, again


def ordered(control):
    """Sessions for which the host was told to dial, beside what was waited for; the end of a probation repeats one (H3)."""
    return {frame.session_id for frame in control.kept if isinstance(frame, HostSessionOpen)}


async def test_cross_node_single_mode_sends_no_notify(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=1) as one, ear(database_url) as heard:
        device, host = await one.device(), await one.host()
        await whole_life(one, device, host)
        await host.control.heartbeat()
        assert (await device.manage("/state", {"state": "disabled"}, host_id=host.host_id)).status == 200
        assert (await host.control.closed()).code == 4111
        assert await heard.heard() == []
        assert await one.sql(BACKENDS) == [(0,)]


async def test_cross_node_signals_carry_only_ids(database_url, two):
    async with ear(database_url) as heard:
        device, host = await two.device(), await two.host()
        streams = await whole_life(two, device, host)
        await host.control.heartbeat()
        assert (await device.manage("/state", {"state": "disabled"}, host_id=host.host_id)).status == 200
        assert (await host.control.closed()).code == 4111
        kinds = set()

        async def told():
            payloads = await heard.heard()
            for payload in payloads:
                signal = SIGNALS.decode(payload)
                assert signal is not None, payload
                assert set(json.loads(payload)) <= {"kind", "host_id", "session_id", "conn_id"}
                kinds.add(signal.kind)
                for canary in canaries:
                    assert canary not in payload
            return "terminal.host_gone" in kinds

        ((person_id,),) = await two.sql("SELECT person_id FROM devices")
        claims = [json.loads(base64.urlsafe_b64decode(each.token.split(".")[1] + "==")) for each in streams]
        secrets = [secret for each, claim in zip(streams, claims, strict=True) for secret in (each.token, claim["jti"])]
        canaries = [*secrets, str(person_id), str(device.device_id), "lab-1", '"shell"', "alex-shell"]
        await eventually(told)
        assert kinds == {
            "terminal.session_open",
            "terminal.host_present",
            "terminal.host_close",
            "terminal.host_gone",
        }


async def test_cross_node_session_open_only_after_commit(database_url, two):
    device, host = await two.device(), await two.host()
    control = await host.connect(two.nodes[1].url)
    await two.sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$"
    )
    await two.sql(
        "CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON terminal_sessions DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION refuse()"
    )
    async with ear(database_url) as heard:
        answer = await device.try_open(host.host_id)
        assert (answer.status, answer.code) == (500, "internal")
        assert not [each for each in await heard.heard() if "session_open" in each]
    assert await two.sql("SELECT count(*) FROM terminal_sessions") == [(0,)]
    assert await two.sql("SELECT count(*) FROM step_ups WHERE consumed_at IS NOT NULL") == [(0,)]

    await two.sql("DROP TRIGGER at_commit ON terminal_sessions")
    stream = await device.open(host.host_id)
    assert (await control.expect(HostSessionOpen)).session_id == stream.session_id
    assert ordered(control) <= {stream.session_id}


MALFORMED = [
    "hello",
    '{"kind":"terminal.session_open"}',
    '{"kind":"terminal.session_open","host_id":null,"session_id":null}',
    '{"kind":"terminal.session_open","host_id":"x","session_id":"y"}',
    '{"kind":"terminal.made_up","host_id":"0199aaaa-0000-7000-8000-00000000000a"}',
    '{"kind":"terminal.host_close","host_id":"0199aaaa-0000-7000-8000-00000000000a","session_id":"0199aaaa-0000-7000-8000-00000000000a"}',
]


def session_open(host_id, session_id):
    return json.dumps({"kind": "terminal.session_open", "host_id": str(host_id), "session_id": str(session_id)})


async def test_cross_node_forged_signal_opens_nothing(database_url, two, caplog):
    device, host, other = await two.device(), await two.host(), await two.host("lab-2")
    control = await host.connect(two.nodes[1].url)
    await other.connect(two.nodes[1].url)
    foreign, closed = await device.open(other.host_id), await device.open(host.host_id)
    await control.expect(HostSessionOpen)
    assert (await device.rest("POST", f"/terminal/sessions/{closed.session_id}/close", {})).status == 200
    await control.expect(HostSessionClose)
    before = ordered(control)

    async with ear(database_url) as voice:
        for session_id in (uuid4(), closed.session_id, foreign.session_id):
            await voice.say(session_open(host.host_id, session_id))
        for payload in (*MALFORMED, '{"kind":"typing.started","who":"Alex"}'):
            await voice.say(payload)
    stream = await device.open(host.host_id)
    assert (await control.expect(HostSessionOpen)).session_id == stream.session_id
    assert ordered(control) <= {stream.session_id, *before}

    def dropped():
        return [each for each in caplog.records if each.message == "terminal signal dropped"]

    await eventually(lambda: len(dropped()) >= len(MALFORMED) * len(two.nodes))
    assert len(dropped()) == len(MALFORMED) * len(two.nodes)


async def test_cross_node_step_up_consumed_once(two):
    device, host = await two.device(), await two.host()
    await host.connect(two.nodes[1].url)
    for opened in range(1, 11):
        step_up_id = await device.step_up("open", host.host_id, "shell", "alex-shell")
        body = {"host_id": str(host.host_id), "profile": "shell", "session_user": "alex-shell"}
        answers = await asyncio.gather(
            *(
                device.rest("POST", "/terminal/sessions", body | {"step_up_id": step_up_id}, url=node.url)
                for node in two.nodes
            )
        )
        won, lost = sorted(answers, key=lambda answer: answer.status)
        assert (won.status, lost.status, lost.code) == (201, 401, "step_up_required")
        assert await two.sql("SELECT count(*) FROM terminal_sessions") == [(opened,)]


async def test_one_of_twenty_redeems_of_a_pairing_code_over_three_nodes_wins(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=3) as three:
        await three.device()
        host = await three.host()
        for _ in range(3):
            code = await three.code(host.host_id)
            machines = [FakeHost(ORIGIN, three.nodes[number % 3].url) for number in range(20)]
            answers = await asyncio.gather(*(each.pair(code) for each in machines))
            winners = [each for each, answer in zip(machines, answers, strict=True) if answer.status_code == 201]
            refusals = [answer.json()["code"] for answer in answers if answer.status_code != 201]
            assert (len(winners), refusals) == (1, ["pairing_code_invalid"] * 19)
            public = winners[0].signing_key.public_key().public_bytes_raw()
            assert [bytes(key) for (key,) in await three.sql("SELECT signing_key FROM hosts")] == [public]
