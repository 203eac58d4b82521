"""The control connection against a server that misbehaves on request (BR-04, BR-35)."""

from __future__ import annotations

import asyncio
import re

import msgspec
import pytest

from bothy_host import redial, state
from bothy_host.clock import steady
from bothy_host.outbox import Outbox
from bothy_wire import frames


async def test_identifies_and_reports_what_it_offers(start, server):
    machine = await start()
    report = await server.reported()
    assert list(report.profiles) == ["shell"]
    assert report.sessions == []
    assert report.join == str(server.join)
    assert state.load(machine.folder).join == report.join, "the join value is on the disk before the report"


async def test_next_identify_returns_the_confirmed_join_value(start, server):
    await start()
    server.controls[-1].transport.abort()
    await server.changes.until(lambda: len(server.identified) == 2)
    assert [identify.join for identify in server.identified] == ["100", "101"]
    assert len({identify.boot_id for identify in server.identified}) == 1


async def test_comes_back_after_every_kind_of_loss_and_never_holds_two(start, server):
    await start()
    for count, code in enumerate((None, 1012, 1011, 1000, 4009, 4106), start=2):
        if code is None:
            server.controls[-1].transport.abort()
        else:
            await server.controls[-1].close(code)
        await server.changes.until(lambda n=count: len(server.all_heard(frames.HostReport)) == n)
    assert server.most_controls == 1


async def test_redials_when_heartbeats_get_no_answer(start, server):
    server.heartbeat, server.miss_limit = 0.05, 3
    server.answer_heartbeats = False
    await start()
    await server.changes.until(lambda: len(server.identified) == 2)
    assert len(server.all_heard(frames.HostHeartbeat)) >= 2
    server.answer_heartbeats = True
    await server.changes.until(lambda: len(server.all_heard(frames.HostReport)) >= 2)


async def test_pending_waits_connected_until_confirmed(start, server):
    server.pending = True
    await start(report=False)
    await server.hears(frames.HostHeartbeat)
    assert not server.all_heard(frames.HostReport)
    await server.confirm()
    await server.reported()
    assert len(server.identified) == 1


@pytest.mark.parametrize("code", [4101, 4105, 4110, 4111, 4112, 4113])
async def test_stops_for_good(start, server, code):
    server.refuse_control = code
    machine = await start(report=False)
    assert await asyncio.wait_for(machine.control.run(), 20) == code


async def test_unsupported_protocol_stops_for_good(start, server):
    server.protocol = (2, 3)
    machine = await start(report=False)
    assert await asyncio.wait_for(machine.control.run(), 20) == 4113


async def test_an_unknown_frame_ends_the_connection_but_not_the_service(start, server):
    await start()
    await server.controls[-1].send('{"type":"host.invented"}')
    await server.changes.until(lambda: server.controls[0].close_code is not None)
    assert server.controls[0].close_code == 4105
    # Such a server is asked again later, not soon.
    await server.changes.until(lambda: len(server.identified) == 2)


async def test_a_full_disk_delays_the_report_and_ends_nothing(start, server):
    machine = await start()
    obstacle = machine.folder / "host.json.new"
    obstacle.mkdir()
    server.controls[-1].transport.abort()
    await server.changes.until(lambda: len(server.identified) >= 3)
    assert len(server.all_heard(frames.HostReport)) == 1
    assert machine.host.pairing.state.join == "101"
    obstacle.rmdir()
    await server.changes.until(lambda: len(server.all_heard(frames.HostReport)) == 2)


async def test_session_survives_the_loss_of_the_control_connection(start, server):
    machine = await start()
    device, side = await machine.session()
    await device.open(side)
    await server.hears(frames.HostSessionStarted, session_id=device.session_id)
    server.controls[-1].transport.abort()
    await server.changes.until(lambda: len(server.all_heard(frames.HostReport)) == 2)
    reported = (await server.reported()).sessions
    assert [(each.session_id, each.phase, each.attached) for each in reported] == [(device.session_id, "running", True)]
    await device.type(b"echo li''ve\n")
    await device.shows(b"live")


async def test_started_is_repeated_until_recorded_and_again_before_a_report(start, server):
    machine = await start()
    device, side = await machine.session()
    await device.open(side)
    await server.changes.until(lambda: len(server.all_heard(frames.HostSessionStarted)) >= 2)
    server.controls[-1].transport.abort()
    await server.changes.until(lambda: len(server.all_heard(frames.HostReport)) == 2)
    await server.changes.until(lambda: isinstance(_before_last_report(server), frames.HostSessionStarted))
    await server.say(frames.HostSessionRecorded(session_id=device.session_id, state="active"))
    await server.changes.until(lambda: not machine.sessions.unrecorded())


async def test_new_keys_are_taken(start, server):
    machine = await start()
    fresh = type(server.signing).generate_key("Ed25519", auto_kid=True)
    server.published = [fresh]
    await server.say(frames.HostKeys(jwks=server.jwks()))
    server.signing = fresh
    device, side = await machine.session()
    await device.open(side)
    assert server.jwks_reads == 0


async def test_server_limits_and_own_limits_the_lower_holds(start, server):
    server.limits = frames.HostLimits(idle_timeout_s=5, idle_grace_s=600, detach_grace_s=1e9, max_duration_s=7)
    machine = await start()
    await server.changes.until(lambda: machine.host.bounds.idle_timeout == 5)
    bounds, own = machine.host.bounds, machine.settings.host
    assert (bounds.idle_timeout, bounds.idle_grace, bounds.max_duration) == (5, 60, 7)
    assert bounds.detach_grace == own.detach_grace


async def test_a_defect_of_a_part_is_a_lost_connection_and_ends_no_session(start, server, monkeypatch, caplog):
    machine = await start()
    device, side = await machine.session()
    await device.open(side)

    async def broken(self, socket) -> None:
        monkeypatch.undo()
        raise RuntimeError("a defect of the writer")

    monkeypatch.setattr(Outbox, "empty_into", broken)
    server.controls[-1].transport.abort()
    await server.changes.until(lambda: len(server.all_heard(frames.HostReport)) == 2)
    assert "control connection failed" in caplog.text
    await device.type(b"echo li''ve\n")
    await device.shows(b"live")


async def test_nothing_of_a_connection_outlives_it(start, server):
    await start()
    before = len(asyncio.all_tasks())
    for count in (2, 3, 4):
        server.controls[-1].transport.abort()
        await server.changes.until(lambda n=count: len(server.all_heard(frames.HostReport)) == n)
    assert len(asyncio.all_tasks()) <= before + 2  # the listener's own, for a connection that is closing


@pytest.mark.parametrize("hello", ["binary", "silence", "no interval", "gone"])
async def test_a_server_that_does_not_greet_is_dialled_again(start, server, monkeypatch, base_settings, hello):
    real, greeted = server._control, []

    async def odd(connection) -> None:
        greeted.append(connection)
        if len(greeted) > 1:
            monkeypatch.undo()
            server.heartbeat = 0.1
            return await real(connection)
        match hello:
            case "binary":
                await connection.send(b"x")
            case "no interval":
                server.heartbeat = 0
                await real(connection)
            case "gone":
                connection.transport.abort()
        return await connection.wait_closed()

    monkeypatch.setattr(server, "_control", odd)
    await start(base_settings.replace("[host]\n", "[host]\ndial_timeout = 0.5\n"))
    assert len(greeted) >= 2


async def test_a_second_hello_is_out_of_turn(start, server):
    await start()
    hello = frames.HostHello(
        challenge=bytes(32),
        jwks=server.jwks(),
        heartbeat_interval_s=1,
        miss_limit=3,
        server_time=1,
        protocol_min=1,
        protocol_max=1,
    )
    await server.say(hello)
    await server.changes.until(lambda: server.controls[0].close_code is not None)
    assert server.controls[0].close_code == 4105


async def test_a_server_that_is_away_is_dialled_until_it_is_back(prepared, server, caplog, eventually, unused_tcp_port):
    state = prepared.host.pairing.state
    prepared.host.pairing.state = msgspec.structs.replace(state, audience=f"http://127.0.0.1:{unused_tcp_port}")
    running = asyncio.create_task(prepared.control.run())
    await eventually(lambda: "connection refused; is the address right" in caplog.text)
    prepared.host.pairing.state = state
    await server.reported()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def _before_last_report(server) -> object:
    last = max(index for index, frame in enumerate(server.heard) if isinstance(frame, frames.HostReport))
    return server.heard[last - 1]


async def test_br35_who_wakes_dials_at_once(start, server, base_settings, eventually):
    machine = await start(base_settings.replace("backoff_cap = 0.2", "backoff_cap = 3600"))
    machine.control._state = redial.Up(steady(), tries=12)  # as after a long outage
    server.controls[-1].transport.abort()
    await eventually(lambda: isinstance(machine.control._state, redial.Waiting))
    machine.control.woke()
    await server.changes.until(lambda: len(server.all_heard(frames.HostReport)) == 2)


async def test_br35_who_wakes_trusts_no_connection_from_before(start, server):
    machine = await start()
    machine.control.woke()
    await server.changes.until(lambda: len(server.all_heard(frames.HostReport)) == 2)
    assert server.most_controls == 1


async def test_a_session_does_not_notice_a_control_connection_that_flaps(start, server):
    machine = await start()
    device, side = await machine.session()
    await device.open(side)
    await server.hears(frames.HostSessionStarted, session_id=device.session_id)
    await device.type(b"i=0; while sleep 0.005; do echo tick $((i++)); done\n")
    for count in range(2, 22):
        before = len(device.output)
        server.controls[-1].transport.abort()
        await server.changes.until(lambda n=count: len(server.all_heard(frames.HostReport)) == n)
        report = server.all_heard(frames.HostReport)[-1]
        assert [(each.session_id, each.phase, each.attached) for each in report.sessions] == [
            (device.session_id, "running", True)
        ]
        await device.changes.until(lambda n=before: len(device.output) > n)
    await device.type(b"\x03")
    await device.changes.until(lambda: device.output.endswith(b"$ "))
    ticks = [int(number) for number in re.findall(rb"tick (\d+)\r", device.output)]
    assert ticks == list(range(len(ticks)))
    assert server.sides == [side]
    assert side.closed is None
