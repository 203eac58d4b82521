"""Whatever ends a session or moves a host, and wherever: it closes everything, everywhere, with the same codes."""

import json
from contextlib import asynccontextmanager

import pytest

from bothy_kit.cluster import cluster
from bothy_kit.ear import ear
from bothy_kit.sockets import Closed
from bothy_server import wiring
from bothy_server.hosts.domain.host import HostState
from bothy_server.platform.lifecycle import Lifecycle
from bothy_server.platform.settings import Settings
from bothy_wire.frames import HostSessionClose, HostSessionOpen, HostSessionRecorded, SidePaired


@pytest.fixture
def database_urls(postgres, migrated_template, database_url):
    """Two databases, one for each run that is compared."""
    other = postgres.create_database(migrated_template)
    yield database_url, postgres.url(other)
    postgres.drop_database(other)


@asynccontextmanager
async def running_session(database_url, folder, nodes, **groups):
    """A session that runs: relayed on the first node, its host's control connection on the last."""
    async with cluster(database_url, folder, nodes=nodes, **groups) as made:
        device, host = await made.device(), await made.host()
        control = await host.connect(made.nodes[-1].url)
        stream = await device.open(host.host_id)
        await control.expect(HostSessionOpen)
        client = await device.dial(stream, made.nodes[0].url)
        data = await host.dial(stream.session_id, made.nodes[0].url)
        for side in (client, data):
            await side.expect(SidePaired)
        await host.started(stream.session_id)
        await control.expect(HostSessionRecorded)
        yield made, device, host, stream, client, data


@asynccontextmanager
async def worker(made, **terminal):
    """A worker beside the nodes."""
    groups = made.settings.model_dump()
    groups["server"]["role"] = "worker"
    groups["terminal"] |= terminal
    async with Lifecycle() as parts:
        await wiring.start_worker(Settings.model_validate(groups), parts)
        yield


# ---- the end of a session -------------------------------------------------------------------------------------------


async def person_close(made, device, host, stream):
    answer = await device.rest("POST", f"/terminal/sessions/{stream.session_id}/close", {}, url=made.nodes[-1].url)
    assert answer.status == 200


async def owner_close(made, device, host, stream):
    """By an owner who is not the session's person, on the node without the control connection."""
    owner = await made.device("Sam")
    await made.sql(
        'INSERT INTO host_grants (person_id, host_id, "right", "session_user")'
        " SELECT person_id, host_id, 'terminal', 'alex-shell' FROM host_owners"
    )
    await made.sql(
        "UPDATE host_owners SET person_id = (SELECT person_id FROM devices WHERE id = %s) WHERE host_id = %s",
        owner.device_id,
        host.host_id,
    )
    path = f"/terminal/sessions/{stream.session_id}/terminate"
    assert (await device.rest("POST", path, {}, url=made.nodes[0].url)).code == "session_unknown"
    assert (await owner.rest("POST", path, {}, url=made.nodes[0].url)).status == 200


async def host_reported_end(made, device, host, stream):
    await host.ended(stream.session_id)


async def worker_end(made, device, host, stream):
    """Of the nodes none sweeps so soon."""
    await made.sql("UPDATE terminal_sessions SET expires_at = now()")


async def how_it_ends(database_url, folder, nodes, end):
    """What each of the three connections got when a session ended, and what was written, without ids."""
    async with running_session(database_url, folder, nodes) as (made, device, host, stream, client, data):
        async with worker(made, sweep_interval=0.05):
            await end(made, device, host, stream)
            sides = [await side.closed() for side in (client, data)]
            told = await host.control.expect(HostSessionClose)
        assert told.session_id == stream.session_id
        await host.control.handled()
        # The end of a probation, which a node alone does not have, may repeat an order to dial (H3).
        others = [
            (type(frame), getattr(frame, "state", None))
            for frame in host.control.kept
            if not isinstance(frame, HostSessionOpen)
        ]
        row = await device.state(stream.session_id)
        audit = await made.sql(
            "SELECT action, code FROM audit_log WHERE action IN ('terminal.terminate', 'terminal.close')"
        )
        return sides, told.reason, others, (row["state"], row["close_reason"], row["close_detail"]), audit


@pytest.mark.parametrize(
    ("end", "reason", "action"),
    [
        (person_close, "client_closed", "terminal.close"),
        (owner_close, "closed_by_owner", "terminal.terminate"),
        (host_reported_end, "process_exited", "terminal.terminate"),
        (worker_end, "max_duration", "terminal.terminate"),
    ],
)
async def test_cross_node_close_reaches_relay_and_control(database_urls, tmp_path, end, reason, action):
    """Relayed on one node, the host's control connection on another: the same as with one node."""
    one, several = [
        await how_it_ends(url, tmp_path, nodes, end) for url, nodes in zip(database_urls, (1, 2), strict=True)
    ]
    assert several == one
    sides, told, others, row, audit = several
    assert sides == [Closed(4100, reason)] * 2
    assert told == reason
    assert others == ([(HostSessionRecorded, "closed")] if end is host_reported_end else [])
    assert row == ("closed", reason, None)
    assert audit == [(action, reason)]


async def test_a_worker_ends_by_the_event_log_and_stages_no_host_close(database_url, tmp_path):
    async with (
        running_session(database_url, tmp_path, 2) as (made, _, host, _, client, _),
        ear(database_url) as heard,
        worker(made, sweep_interval=0.05),
    ):
        await heard.heard()
        await made.sql("UPDATE terminal_sessions SET expires_at = now()")
        assert (await client.closed()).reason == "max_duration"
        await host.control.expect(HostSessionClose)
        assert [json.loads(each)["kind"] for each in await heard.heard()] == []


async def test_what_passed_is_in_the_row_at_the_end_of_a_pairing(database_url, tmp_path):
    async with running_session(database_url, tmp_path, 2) as (made, _, host, stream, client, data):
        await client.send(b"12345")
        assert await data.receive() == b"12345"
        await data.send(b"1234567")
        assert await client.receive() == b"1234567"
        await host.ended(stream.session_id)
        await client.closed()
        await data.closed()
        await made.nodes[0].stop()
        assert await made.sql("SELECT bytes_in, bytes_out FROM terminal_sessions") == [(5, 7)]
        made.nodes.pop(0)


# ---- the state of a host --------------------------------------------------------------------------------------------


async def disable(made, device, host):
    answer = await device.manage("/state", {"state": "disabled"}, host_id=host.host_id)
    assert (answer.status, answer.body["state"], answer.body["disabled_reason"]) == (200, "disabled", "operator")


async def retire(made, device, host):
    answer = await device.manage("/state", {"state": "retired"}, host_id=host.host_id)
    assert (answer.status, answer.body["state"]) == (200, "retired")


async def disable_by_command(made, device, host):
    await made.admin.transitions.set_state(host.host_id, HostState.DISABLED, None)


async def pair_again(made, device, host):
    answer = await device.manage("/pairing-codes", {}, host_id=host.host_id)
    assert answer.status == 201


async def how_it_goes(database_url, folder, nodes, act):
    """How every connection of a host ended, and what is known of its sessions and answered afterwards, without ids."""
    async with running_session(database_url, folder, nodes) as (made, device, host, stream, client, data):
        opening = await device.open(host.host_id)
        lone = await device.dial(opening, made.nodes[-1].url)

        await act(made, device, host)

        ends = [await each.closed() for each in (host.control, client, data, lone)]
        rows = [await device.state(each.session_id) for each in (stream, opening)]
        after = set()
        for node in made.nodes:
            again = await (await host.identify(node.url)).closed()
            refused = await device.try_open(host.host_id, url=node.url)
            after.add((again.code, refused.status, refused.code))
        audit = await made.sql("SELECT code FROM audit_log WHERE action = 'terminal.terminate'")
        return ends, [(row["state"], row["close_reason"]) for row in rows], after, audit


@pytest.mark.parametrize(
    ("act", "code", "reason"),
    [
        (disable, 4111, "host_disabled"),
        (disable_by_command, 4111, "host_disabled"),
        (retire, 4111, "host_retired"),
        (pair_again, 4110, "host_repaired"),
    ],
)
async def test_cross_node_host_transitions_close_everywhere(database_urls, tmp_path, act, code, reason):
    one, several = [
        await how_it_goes(url, tmp_path, nodes, act) for url, nodes in zip(database_urls, (1, 3), strict=True)
    ]
    assert several == one
    (control, *sides), rows, after, audit = several
    assert control.code == code
    assert sides == [Closed(4100, reason)] * 3
    assert rows == [("closed", reason)] * 2
    assert after == {(4101 if act is pair_again else code, 409, "host_not_active")}
    assert audit == [(reason,)] * 2


async def test_an_enabled_host_dials_in_again_and_works(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=2) as made:
        device, host = await made.device(), await made.host()
        control = await host.connect(made.nodes[1].url)
        await disable(made, device, host)
        assert (await control.closed()).code == 4111
        enabled = await device.manage("/state", {"state": "active"}, host_id=host.host_id, url=made.nodes[1].url)
        assert enabled.body["state"] == "active"
        control = await host.connect(made.nodes[0].url)
        await device.open(host.host_id)
        await control.expect(HostSessionOpen)


async def test_the_state_of_a_host_is_its_owners_affair(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=1) as made:
        owner, stranger = await made.device(), await made.device("Sam")
        host_id = (await made.host()).host_id
        retire = {"state": "retired", "step_up_id": str(host_id)}
        assert (await stranger.rest("POST", f"/hosts/{host_id}/state", retire)).code == "host_unknown"
        assert (await owner.rest("POST", f"/hosts/{host_id}/state", retire)).code == "step_up_required"
        assert (await owner.manage("/state", {"state": "pending"}, host_id=host_id)).code == "body_invalid"
        assert (await owner.manage("/state", {"state": "retired"}, host_id=host_id)).status == 200
        conflict = await owner.manage("/state", {"state": "active"}, host_id=host_id)
        assert (conflict.status, conflict.code) == (409, "host_state_conflict")
