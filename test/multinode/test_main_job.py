"""A session opens across two nodes: REST on one, control connection on another, the relay where the edge says."""

import pytest

from bothy_kit.cluster import cluster
from bothy_wire.frames import HostSessionClose, HostSessionOpen, HostSessionRecorded, SidePaired, SideUnpaired


@pytest.fixture
async def two(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=2) as running:
        yield running


async def test_open_pairs_across_nodes_and_passes_bytes_both_ways(two):
    device = await two.device(url=two.nodes[0].url)
    host = await two.host()
    control = await host.connect(two.nodes[1].url)

    stream = await device.open(host.host_id)
    opening = await control.expect(HostSessionOpen)
    assert (opening.session_id, opening.profile, opening.session_user) == (stream.session_id, "shell", "alex-shell")

    client = await device.dial(stream, two.url_of(stream.session_id, "device"))
    data = await host.dial(stream.session_id, two.url_of(stream.session_id, "host"))
    assert (await client.expect(SidePaired)).session_token is not None
    assert (await data.expect(SidePaired)).session_token is None

    await client.send(b"to the host" * 1000)
    assert await data.receive() == b"to the host" * 1000
    await data.send(b"to the device")
    assert await client.receive() == b"to the device"

    await host.started(stream.session_id)
    assert (await control.expect(HostSessionRecorded)).state == "active"
    assert (await device.state(stream.session_id))["state"] == "active"

    await host.ended(stream.session_id)
    assert (await control.expect(HostSessionRecorded)).state == "closed"
    closed = await client.closed()
    assert (closed.code, closed.reason) == (4100, "process_exited")
    assert (await data.closed()).code == 4100


async def test_a_guest_works_as_whom_the_grant_says(two):
    """Robin owns the host; Alex may use it as one user."""
    await two.device("Robin")
    host, guest = await two.host("lab-1", "Robin"), await two.device("Alex", url=two.nodes[0].url)
    await host.connect(two.nodes[1].url)
    assert (await guest.rest("GET", f"/hosts/{host.host_id}")).code == "host_unknown"
    await two.sql(
        'INSERT INTO host_grants (host_id, person_id, "right", "session_user", created_at)'
        " SELECT %s, id, 'terminal', 'alex-shell', now() FROM persons WHERE name = 'Alex'",
        host.host_id,
    )
    stream = await guest.open(host.host_id)
    assert (await host.control.expect(HostSessionOpen)).session_user == "alex-shell"
    url = two.url_of(stream.session_id, "device")
    client, data = await guest.dial(stream, url), await host.dial(stream.session_id, url)
    await client.expect(SidePaired)
    await data.expect(SidePaired)


async def test_close_by_the_person_reaches_every_side(two):
    device = await two.device(url=two.nodes[0].url)
    host = await two.host()
    control = await host.connect(two.nodes[1].url)
    stream = await device.open(host.host_id)
    client = await device.dial(stream, two.url_of(stream.session_id, "device"))
    data = await host.dial(stream.session_id, two.url_of(stream.session_id, "host"))
    await client.expect(SidePaired)

    answer = await device.rest("POST", f"/terminal/sessions/{stream.session_id}/close", {})

    assert (answer.status, answer.body["state"], answer.body["close_reason"]) == (200, "closed", "client_closed")
    assert (await client.closed()).reason == "client_closed"
    assert (await data.closed()).code == 4100
    assert (await control.expect(HostSessionClose)).reason == "client_closed"


async def test_a_device_that_goes_leaves_the_host_side_waiting_and_attach_meets_it_again(two):
    device = await two.device(url=two.nodes[0].url)
    host = await two.host()
    await host.connect(two.nodes[1].url)
    stream = await device.open(host.host_id)
    url = two.url_of(stream.session_id, "device")
    client = await device.dial(stream, url)
    data = await host.dial(stream.session_id, url)
    await data.expect(SidePaired)
    await host.started(stream.session_id)
    await host.control.expect(HostSessionRecorded)

    client.cut()
    await data.expect(SideUnpaired)
    await data.ready()

    again = await device.attach(stream.session_id, url=two.nodes[1].url)
    assert again.attach_seq == 2
    client = await device.dial(again, url)
    await client.expect(SidePaired)
    await data.expect(SidePaired)
    await data.send(b"still here")
    assert await client.receive() == b"still here"
