"""A paired host waits for its owner, who may be on another node; a new pairing ends the old one everywhere."""

import pytest

from bothy_kit.cluster import cluster
from bothy_kit.fake_host import FakeHost
from bothy_kit.sockets import Closed
from bothy_wire.frames import HostIdentified, HostPending, HostSessionOpen, SidePaired
from bothy_wire.signing import fingerprint


@pytest.fixture
async def two(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=2, hosts={"pairing": "confirm"}) as running:
        yield running


def shown(host):
    return fingerprint(host.channel_key.public_key().public_bytes_raw())


async def test_a_waiting_host_proceeds_when_its_owner_confirms_on_another_node(two):
    owner = await two.device(url=two.nodes[0].url)
    host = await two.host()
    control = await host.identify(two.nodes[1].url)
    await control.expect(HostPending)
    await control.heartbeat()
    assert (await owner.try_open(host.host_id)).code == "host_not_active"

    confirmed = await owner.manage("/confirm", {"fingerprint": shown(host)}, host_id=host.host_id)
    assert (confirmed.status, confirmed.body["state"]) == (200, "active")

    host.join = (await control.expect(HostIdentified)).join_offered
    await control.send(host.report())
    await control.handled()
    host.control = control
    await owner.open(host.host_id)
    await control.expect(HostSessionOpen)


async def test_another_fingerprint_and_another_person_confirm_nothing(two):
    owner = await two.device()
    stranger = await two.device("Sam")
    host = await two.host()
    path, good = f"/hosts/{host.host_id}/confirm", {"fingerprint": shown(host), "step_up_id": str(host.host_id)}
    other = await owner.manage("/confirm", {"fingerprint": "SHA256:other"}, host_id=host.host_id)
    assert other.code == "fingerprint_mismatch"
    assert (await owner.rest("POST", path, good)).code == "step_up_required"
    assert (await stranger.rest("POST", path, good)).code == "host_unknown"
    assert (await owner.rest("GET", f"/hosts/{host.host_id}")).body["state"] == "pending"


async def test_a_new_pairing_closes_a_connection_that_waits(two):
    await two.device()
    host = await two.host()
    control = await host.identify(two.nodes[1].url)
    await control.expect(HostPending)
    await two.code(host.host_id)
    assert (await control.closed()).code == 4110


async def test_a_new_pairing_ends_connection_and_sessions_on_every_node(two):
    owner = await two.device(url=two.nodes[0].url)
    host = await two.host()
    await owner.manage("/confirm", {"fingerprint": shown(host)}, host_id=host.host_id)
    control = await host.connect(two.nodes[1].url)
    stream = await owner.open(host.host_id)
    client = await owner.dial(stream, two.url_of(stream.session_id, "device"))
    data = await host.dial(stream.session_id, two.url_of(stream.session_id, "host"))
    await client.expect(SidePaired)

    code = await two.code(host.host_id)

    assert (await control.closed()).code == 4110
    assert (await client.closed()).reason == "host_repaired"
    assert (await data.closed()).code == 4100
    assert (await host.pair(code)).status_code == 201
    assert host.pairing_seq == 2


async def test_another_machine_takes_the_place_of_one_with_sessions_on_two_nodes(two):
    """By a new code: what ran ends at once, the old key is worth nothing, and an owner lets the new one in."""
    owner, operator = await two.device(), await two.operator()
    host = await two.host()
    await owner.manage("/confirm", {"fingerprint": shown(host)}, host_id=host.host_id)
    control = await host.connect(two.nodes[1].url)
    sides = []
    for node in two.nodes:
        stream = await owner.open(host.host_id)
        pair = await owner.dial(stream, node.url), await host.dial(stream.session_id, node.url)
        for side in pair:
            await side.expect(SidePaired)
        sides += pair

    made = await operator.manage("/pairing-codes", host_id=host.host_id, url=two.nodes[0].url)
    assert made.status == 201

    assert (await control.closed()).code == 4110
    assert [await side.closed() for side in sides] == [Closed(4100, "host_repaired")] * 4
    assert (await (await host.identify(two.nodes[0].url)).closed()).code == 4101
    async with FakeHost(host.origin, two.nodes[1].url) as machine:
        assert (await machine.pair(made.body["code"])).status_code == 201
        told = (await owner.rest("GET", f"/hosts/{host.host_id}")).body
        assert (told["state"], told["fingerprint"]) == ("pending", shown(machine))
        assert shown(machine) != shown(host)
        for who, code in ((operator, "owner_required"), (owner, "")):
            answer = await who.manage("/confirm", {"fingerprint": shown(machine)}, host_id=host.host_id)
            assert (answer.body.get("code") or "") == code
        control = await machine.connect(two.nodes[0].url)
        await owner.open(host.host_id)
        await control.expect(HostSessionOpen)
