"""Real pseudo-terminals behind a real socket, a real channel in front (BR-05 to BR-10)."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import os
import pwd
import signal
import uuid
from pathlib import Path

from bothy_host import processes, redial
from bothy_host.clock import steady
from bothy_wire import frames

ME = pwd.getpwuid(os.geteuid()).pw_name
RAW = b"stty raw -echo; echo rea''dy; "


async def test_program_starts_only_after_opened_with_size_and_term_of_message_1(start, server):
    machine = await start()
    device, side = await machine.session(term="vt220")
    await device.open(side, size=(132, 43))
    await server.hears(frames.HostSessionStarted, session_id=device.session_id)
    await device.type(b"stty size; echo $TERM-$USER-$HOME\n")
    await device.shows(b"43 132\r\nvt220-")
    assert device.opened[0].resume == "new"


async def test_exit_status_and_ended_until_recorded(start, server):
    machine = await start()
    device, side = await machine.session()
    await device.open(side)
    await device.type(b"exit 7\n")
    assert await device.exits() == 7
    ended = await server.hears(frames.HostSessionEnded, session_id=device.session_id)
    assert (ended.reason, ended.exit_status) == ("process_exited", 7)
    await server.changes.until(lambda: len(server.all_heard(frames.HostSessionEnded)) >= 3)
    await server.say(frames.HostSessionRecorded(session_id=device.session_id, state="closed"))
    await server.changes.until(lambda: not machine.sessions.unrecorded())
    assert await side.until_closed() == 1000


async def test_br05_large_paste_arrives_whole(start):
    machine = await start()
    device, side = await machine.session()
    await device.open(side)
    await device.type(RAW + b"head -c 200000 | sha256sum; stty sane\n")
    await device.shows(b"ready")
    paste = bytes(1 + index % 250 for index in range(200_000))
    await device.type(paste)
    await device.shows(hashlib.sha256(paste).hexdigest().encode())
    await device.changes.until(lambda: device.end.pending_input == 0)


async def test_br06_paste_with_echo_does_not_lock_up(start, tmp_path):
    machine = await start()
    device, side = await machine.session()
    other, other_side = await machine.session()
    await device.open(side)
    await other.open(other_side)
    await device.type(f"tee {tmp_path}/paste\n".encode())
    line = b"x" * 69 + b"\n"
    lines = 2_000_000 // len(line)
    await device.type(line * lines)
    await other.type(b"echo still-$((40 + 2))\n")
    await other.shows(b"still-42")
    assert device.end.pending_input
    await device.type(b"\x04")
    await device.type(f"wc -l < {tmp_path}/paste; echo li''nes\n".encode())
    await device.shows(b"lines")
    assert b"%d\r\n" % lines in device.output
    await device.type(b"cat\nhel-lo\n")
    await device.shows(b"hel-lo\r\n")
    await device.type(b"\x03")
    # Only then: the shell drops what was typed ahead of its prompt when it is interrupted.
    await device.changes.until(lambda: b"^C" in device.output and device.output.endswith(b"$ "))
    await device.type(b"echo do''ne\n")
    await device.shows(b"done")


async def test_br07_last_output_is_never_lost(start, base_settings):
    command = '["/bin/bash", "-c", "head -c 60000 /dev/zero | tr \'\\\\0\' z; exit 7"]'
    machine = await start(base_settings + f'[profile.burst]\ncommand = {command}\nusers = ["{ME}"]\n')
    for _ in range(30):
        device, side = await machine.session("burst")
        token = machine.server.token(device.session_id, device.public, profile="burst")
        await device.attach(side, token=token)
        assert await device.exits() == 7
        assert bytes(device.output) == b"z" * 60000


async def test_br08_nothing_is_left_behind(start, server):
    machine = await start()
    terminals = _terminals()
    devices = []
    for number in range(6):
        device, side = await machine.session()
        await device.open(side)
        devices.append(device)
        hostile = b"trap '' HUP; " if number == 0 else b""
        await device.type(hostile + b"sleep 9999 & tail -f /dev/null & echo pid=$$.; sleep 9999\n")
        await device.changes.until(lambda d=device: b"pid=" in d.output.replace(b"pid=$$", b"") and b".\r" in d.output)
    pids = [int(bytes(d.output).replace(b"pid=$$", b"").split(b"pid=")[1].split(b".")[0]) for d in devices]
    assert all(len(processes.members(pid)) >= 3 for pid in pids)
    assert _terminals() == terminals + len(devices)
    for device in devices:
        await server.say(frames.HostSessionClose(session_id=device.session_id, reason="detach_expired"))
    await asyncio.wait_for(asyncio.gather(*machine.sessions._tasks), 20)
    assert [processes.members(pid) for pid in pids] == [[]] * len(pids)
    assert not _zombies_of(os.getpid())
    assert _terminals() == terminals


async def test_br08_background_job_does_not_hold_the_session_open(start):
    machine = await start()
    device, side = await machine.session()
    await device.open(side)
    await device.type(b"sleep 9999 & echo leader=$$.; exit 3\n")
    assert await device.exits() == 3
    leader = int(bytes(device.output).replace(b"leader=$$", b"").split(b"leader=")[1].split(b".")[0])
    (job,) = processes.members(leader)  # as with ssh, see docs/adr/0005-background-jobs.md
    os.kill(job, signal.SIGKILL)


async def test_br09_sizes(start):
    machine = await start()
    device, side = await machine.session()
    await device.open(side, size=(132, 43))
    for step in range(500):
        await device.resize(20 + step % 100, 10 + step % 50)
    await device.resize(101, 37)
    await device.type(b"stty size\n")
    await device.shows(b"37 101")
    await device.resize(0, 0)
    await device.type(b"stty size; echo al''ive\n")
    await device.shows(b"alive")
    assert device.output.count(b"37 101") == 2
    assert any("terminal size" in notice for notice in device.notices)


async def test_br09_resize_after_exit_hurts_nobody(start):
    machine = await start()
    device, side = await machine.session()
    device.greedy = False
    await device.open(side)
    await device.type(b"exit\n")
    await device.exits()
    await device.resize(70, 20)
    device.end.processed(len(device.output) + 1)
    await device.process(0)
    await machine.server.hears(frames.HostSessionEnded, session_id=device.session_id)


async def test_br10_bytes_are_bytes(start):
    machine = await start()
    device, side = await machine.session()
    await device.open(side)
    await device.type(
        RAW + b'head -c 3 | od -An -tx1; for i in 342 202 254; do printf "\\\\$i"; sleep 0.05; done;'
        b" head -c 100000 /dev/urandom | tee /dev/stderr 2>&1 >/dev/null | sha256sum >/dev/null;"
        b" printf 'E''ND'\n"
    )
    await device.shows(b"ready")
    device.output.clear()
    await device.type(b"\xe2")
    await device.type(b"\x82\xac")
    await device.shows(b"END")
    assert b"e2 82 ac" in device.output
    assert b"\xe2\x82\xac" in device.output


async def test_detach_and_exact_resume_loses_no_byte(start):
    machine = await start()
    device, side = await machine.session()
    await device.open(side)
    await device.type(RAW + b"seq 1 20000; echo mid''dle; head -c 1 >/dev/null; seq 20001 40000; printf 'E''ND'\n")
    await device.shows(b"middle")
    await device.type(b"x")
    await side.leave()
    await device.open(side)
    await device.shows(b"END")
    assert device.opened[-1].resume == "exact"
    text = bytes(device.output).partition(b"ready")[2].replace(b"middle\n", b"").split()
    assert text[:-1] == [str(number).encode() for number in range(1, 40001)]


async def test_another_device_gets_a_repaint_without_queries(start):
    machine = await start()
    device, side = await machine.session()
    await device.open(side)
    await device.type(b"printf 'a\\033[cb\\033[6nc\\n'; echo do''ne\n")
    await device.shows(b"done")
    await side.leave()
    second = type(device)(machine.server, machine.channel_public, device.session_id)
    await second.open(side, size=(90, 30))
    assert second.opened[0].resume == "new"
    await second.changes.until(lambda: second.repainted)
    assert bytes(second.repaint).startswith(b"\x1bc")
    assert b"\ra\x18b\x18c\r\ndone" in second.repaint
    await second.type(b"stty size\n")
    await second.shows(b"30 90")


async def test_lost_data_connection_is_dialled_again(start):
    machine = await start()
    device, side = await machine.session()
    await device.open(side)
    await device.type(b"echo o''ne\n")
    await device.shows(b"one")
    side.connection.transport.abort()
    device.gone()
    again = await machine.server.side(2)
    await device.open(again)
    await device.type(b"echo t''wo\n")
    await device.shows(b"two")


async def test_repeated_open_dials_newer_and_closes_older_with_1000(start, server):
    machine = await start()
    device, side = await machine.session()
    await device.open(side)
    await server.hears(frames.HostSessionStarted, session_id=device.session_id)
    await server.order(device.session_id)
    newer = await server.side(2)
    assert await side.until_closed() == 1000
    device.gone()
    await device.open(newer)
    await device.type(b"echo mo''ved\n")
    await device.shows(b"moved")


async def test_e6_the_older_data_connection_serves_until_a_newer_is_accepted(start, server):
    machine = await start()
    device, side = await machine.session()
    await device.open(side)
    await server.hears(frames.HostSessionStarted, session_id=device.session_id)
    server.refuse_data = [1013, 1012]
    await server.order(device.session_id)
    await server.changes.until(lambda: not server.refuse_data)
    await device.type(b"echo sti''ll\n")
    await device.shows(b"still")
    assert side.closed is None
    await server.side(2)
    assert await side.until_closed() == 1000


async def test_br35_who_wakes_dials_at_once_and_the_shell_is_the_same(start, server, base_settings, eventually):
    machine = await start(base_settings.replace("backoff_cap = 0.2", "backoff_cap = 3600"))
    device, side = await machine.session()
    await device.open(side)
    await device.type(b"word=sa''me; echo re''ady\n")
    await device.shows(b"ready")
    data = machine.sessions._running[device.session_id]._data
    data._state = redial.Up(steady(), tries=12)  # as after a long outage
    side.connection.transport.abort()
    device.gone()
    await eventually(lambda: isinstance(data._state, redial.Waiting))
    machine.sessions.woke()
    await device.open(await server.side(2))
    machine.sessions.woke()  # and what was up is not trusted
    device.gone()
    await device.open(await server.side(3))
    assert device.opened[-1].resume == "exact"
    await device.type(b"echo the-$word\n")
    await device.shows(b"the-same")


async def test_time_asleep_counts_for_the_limits(start, server, base_settings, monkeypatch):
    machine = await start(base_settings.replace("[host]\n", "[host]\ndetach_grace = 60\n"))
    device, side = await machine.session()
    await device.open(side)
    await server.hears(frames.HostSessionStarted, session_id=device.session_id)
    await side.leave()
    monkeypatch.setattr("bothy_host.session.steady", lambda: steady() + 61)
    machine.sessions.woke()
    assert (await server.hears(frames.HostSessionEnded, session_id=device.session_id)).reason == "detach_expired"


async def test_a_shell_without_any_connection_ends_by_the_hosts_own_limit(start, server, base_settings):
    machine = await start(base_settings.replace("[host]\n", "[host]\ndetach_grace = 0.5\n"))
    device, side = await machine.session()
    await device.open(side)
    await server.hears(frames.HostSessionStarted, session_id=device.session_id)
    server.refuse_data = [1013] * 100
    side.connection.transport.abort()
    device.gone()
    assert (await server.hears(frames.HostSessionEnded, session_id=device.session_id)).reason == "detach_expired"


async def test_what_another_device_typed_and_the_program_did_not_take_is_forgotten_and_told(start, tmp_path):
    machine = await start()
    first, side = await machine.session()
    await first.open(side)
    taken, go = tmp_path / "taken", tmp_path / "go"
    os.mkfifo(go)
    await first.type(RAW + f"read < {go}; head -c 60000 > {taken}; stty sane; echo to''ok\n".encode())
    await first.shows(b"ready")
    await first.type(b"1" * 60_000)
    await first.changes.until(lambda: 0 < first.end.pending_input < 60_000)
    await side.leave()
    second = type(first)(machine.server, machine.channel_public, first.session_id)
    await second.open(side)
    await second.type(b"2" * 60_000)
    await asyncio.to_thread(go.write_text, "go\n")
    await second.shows(b"took")
    read = taken.read_bytes()
    ones = len(read) - len(read.lstrip(b"1"))
    assert 0 < ones < 60_000, "the kernel had some of it"
    assert read == b"1" * ones + b"2" * (60_000 - ones)
    await side.leave()
    await first.open(side)
    assert first.opened[-1].resume == "new"
    assert first.opened[-1].dropped_input > 0


async def test_output_stops_at_the_window_and_ctrl_c_still_works(start):
    machine = await start()
    device, side = await machine.session()
    await device.open(side)
    device.greedy = False
    await device.type(b"yes\n")
    window = machine.settings.channel.output_window
    await device.changes.until(lambda: len(device.output) + len(device.repaint) >= window)
    await device.type(b"\x03")
    device.greedy = True
    await device.process(len(device.output))
    await device.changes.until(lambda: device.output.endswith(b"$ "))
    await device.type(b"echo do''ne\n")
    await device.shows(b"done")
    assert len(device.output) < 2 * window


async def test_program_waits_for_an_absent_person_then_goes_on(start, base_settings, tmp_path, eventually):
    limits = "[host]\nreplay_bytes = 65536\nrepaint_bytes = 8192\nhold_output = 0.3\n"
    machine = await start(base_settings.replace("[host]\n", limits))
    device, side = await machine.session()
    await device.open(side)
    mark = tmp_path / "mark"
    await device.type(RAW + f"head -c 1 >/dev/null; seq 1 200000; touch {mark}; sleep 9999\n".encode())
    await device.shows(b"ready")
    device.greedy = False
    await device.type(b"x")
    await side.leave()
    await eventually(mark.exists)
    second = type(device)(machine.server, machine.channel_public, device.session_id)
    await second.open(side)
    await second.changes.until(lambda: b"200000" in second.repaint + second.output)
    assert len(second.repaint) < 9000
    assert any("bytes of output" in notice for notice in second.notices)


async def test_failed_channel_closes_4107_when_unpaired_does_not_come(start, base_settings):
    machine = await start(base_settings + "[channel]\nfail_grace = 0.1\n")
    device, side = await machine.session()
    await device.open(side)
    await side.connection.send(b"no record")
    assert await side.until_closed() == 4107
    device.gone()
    again = await machine.server.side(2)
    await device.open(again)


async def test_failed_channel_waits_for_unpaired_and_goes_on(start):
    machine = await start()
    device, side = await machine.session()
    await device.open(side)
    await side.connection.send(b"no record")
    await side.leave()
    assert side.ready == 2
    await device.open(side)
    await device.type(b"echo ba''ck\n")
    await device.shows(b"back")


async def test_handshake_that_does_not_finish_is_4107(start, base_settings):
    machine = await start(base_settings + "[channel]\nhandshake_timeout = 0.2\n")
    _, side = await machine.session()
    await side.connection.send(frames.encode(frames.SidePaired()))
    assert await side.until_closed() == 4107


async def test_refused_opening_is_reported(start, server):
    machine = await start()
    device, side = await machine.session()
    stale = server.token(device.session_id, device.public, exp=1)
    await device.attach(side, token=stale)
    await device.changes.until(lambda: device.refused)
    assert device.refused == "token_expired"
    ended = await server.hears(frames.HostSessionEnded, session_id=device.session_id)
    assert ended.reason == "refused"


async def test_replayed_token_is_refused_and_the_session_waits_on(start, server):
    machine = await start()
    device, side = await machine.session()
    token = server.token(device.session_id, device.public)
    await device.attach(side, token=token)
    await device.changes.until(lambda: device.opened)
    await side.leave()
    await device.attach(side, token=token)
    await device.changes.until(lambda: device.refused)
    assert device.refused == "token_replayed"
    await side.leave()
    await device.open(side)


async def test_wrong_size_and_wrong_profile_are_refused(start, server):
    machine = await start()
    device, side = await machine.session()
    await device.attach(side, size=(0, 24))
    await device.changes.until(lambda: device.refused)
    assert device.refused == "size_invalid"
    other, side = await machine.session()
    await other.attach(side, token=server.token(other.session_id, other.public, profile="admin"))
    await other.changes.until(lambda: other.refused)
    assert other.refused == "profile_mismatch"


async def test_unauthorized_device_is_refused_and_a_removed_one_loses_its_session(
    start, server, base_settings, tmp_path
):
    from bothy_wire.signing import fingerprint

    listed = tmp_path / "authorized_devices"
    listed.touch(mode=0o600)
    machine = await start(f'authorized_devices = "{listed}"\n' + base_settings)
    stranger, side = await machine.session()
    await stranger.attach(side)
    await stranger.changes.until(lambda: stranger.refused)
    assert stranger.refused == "device_not_authorized"
    device, side = await machine.session()
    listed.write_text(f"{fingerprint(device.public)} laptop of Alex profiles=shell\n")
    await device.open(side)
    other, side = await machine.session()
    listed.write_text(f"{fingerprint(other.public)} tablet\n")
    await other.open(side)
    ended = await server.hears(frames.HostSessionEnded, session_id=device.session_id)
    assert ended.reason == "refused"


async def test_a_removed_device_loses_its_other_sessions_when_it_is_refused(start, server, base_settings, tmp_path):
    from bothy_wire.signing import fingerprint

    listed = tmp_path / "authorized_devices"
    listed.touch(mode=0o600)
    machine = await start(f'authorized_devices = "{listed}"\n' + base_settings)
    attached, side = await machine.session()
    other, other_side = await machine.session()
    listed.write_text(f"{fingerprint(attached.public)} laptop\n{fingerprint(other.public)} tablet\n")
    await attached.open(side)
    await other.open(other_side)
    listed.write_text(f"{fingerprint(other.public)} tablet\n")
    again, side = await machine.session(key=attached.key)
    await again.attach(side)
    await again.changes.until(lambda: again.refused)
    assert again.refused == "device_not_authorized"
    for lost in (again, attached):
        assert (await server.hears(frames.HostSessionEnded, session_id=lost.session_id)).reason == "refused"
    await other.type(b"echo st''ill here\n")
    await other.shows(b"still here")


async def test_a_file_that_cannot_be_read_ends_no_session_and_lets_nobody_in(start, base_settings, tmp_path, caplog):
    from bothy_wire.signing import fingerprint

    listed = tmp_path / "authorized_devices"
    listed.touch(mode=0o600)
    machine = await start(f'authorized_devices = "{listed}"\n' + base_settings)
    device, side = await machine.session()
    listed.write_text(f"{fingerprint(device.public)} laptop\n")
    await device.open(side)
    listed.write_text(f"{fingerprint(device.public)} lap")
    again, side = await machine.session(key=device.key)
    await again.attach(side)
    await again.changes.until(lambda: again.refused)
    assert again.refused == "device_not_authorized"
    assert "its last line has no end" in caplog.text
    await device.type(b"echo st''ill here\n")
    await device.shows(b"still here")


async def test_spawn_failure_is_told_to_both(start, server, base_settings):
    machine = await start(base_settings.replace('"/bin/bash"', '"/no/such/program"'))
    device, side = await machine.session()
    await device.open(side)
    ended = await server.hears(frames.HostSessionEnded, session_id=device.session_id)
    assert ended.reason == "spawn_failed"
    await device.changes.until(lambda: device.notices)
    assert "/no/such/program: No such file" in device.notices[0]
    assert not server.all_heard(frames.HostSessionStarted)


async def test_unknown_profile_and_user(start, server):
    await start()
    first, second = uuid.uuid4(), uuid.uuid4()
    await server.order(first, profile="admin")
    await server.order(second, user="nobody-here")
    assert (await server.hears(frames.HostSessionEnded, session_id=first)).reason == "profile_unknown"
    assert (await server.hears(frames.HostSessionEnded, session_id=second)).reason == "user_unknown"


async def test_idle_is_warned_about_then_ends(start, server, base_settings):
    machine = await start(base_settings.replace("[host]\n", "[host]\nidle_timeout = 0.4\nidle_grace = 0.3\n"))
    device, side = await machine.session()
    await device.open(side)
    await device.changes.until(lambda: device.notices)
    assert "idle" in device.notices[0]
    assert (await server.hears(frames.HostSessionEnded, session_id=device.session_id)).reason == "idle"


async def test_detached_too_long_and_too_old_end(start, server, base_settings):
    machine = await start(base_settings.replace("[host]\n", "[host]\ndetach_grace = 0.2\nmax_duration = 3\n"))
    device, side = await machine.session()
    await device.open(side)
    other, other_side = await machine.session()
    await other.open(other_side)
    await side.leave()
    assert (await server.hears(frames.HostSessionEnded, session_id=device.session_id)).reason == "detach_expired"
    assert (await server.hears(frames.HostSessionEnded, session_id=other.session_id)).reason == "max_duration"


async def test_exit_nobody_saw_is_reported_after_the_linger(start, server, base_settings):
    machine = await start(base_settings.replace("[host]\n", "[host]\nexit_linger = 0.2\n"))
    device, side = await machine.session()
    await device.open(side)
    await device.type(b"sleep 0.1; exit 5\n")
    await device.shows(b"exit 5")
    await side.leave()
    ended = await server.hears(frames.HostSessionEnded, session_id=device.session_id)
    assert (ended.reason, ended.exit_status) == ("process_exited", 5)


async def test_exit_is_delivered_to_a_device_that_comes_back(start, server):
    machine = await start()
    device, side = await machine.session()
    await device.open(side)
    await device.type(RAW + b"head -c 1 >/dev/null; printf last; exit 5\n")
    await device.shows(b"ready")
    device.greedy = False
    await device.type(b"x")
    await side.leave()
    device.greedy = True
    await device.open(side)
    assert await device.exits() == 5
    assert bytes(device.output).endswith(b"lastexit\n")
    await server.hears(frames.HostSessionEnded, session_id=device.session_id)


async def test_what_the_kernel_held_at_the_exit_fits_beside_the_smallest_window(start, base_settings, eventually):
    small = "[host]\nreplay_bytes = 4096\nrepaint_bytes = 4096\n"
    window = "[channel]\noutput_window = 4096\noutput_window_min = 4096\noutput_window_max = 4096\n"
    machine = await start(base_settings.replace("[host]\n", small) + window)
    device, side = await machine.session()
    await device.open(side)
    await device.type(b"stty -echo; echo rea''dy\n")
    await device.changes.until(lambda: b"ready" in device.output and device.output.endswith(b"$ "))
    device.greedy, shown = False, len(device.output)
    await device.type(b"exec bash -c 'yes & sleep 0.5; exit 3'\n")
    session = machine.sessions._running[device.session_id]
    await eventually(lambda: session._status == 3)
    device.greedy = True
    await device.process(len(device.output) - shown)
    assert await device.exits() == 3


async def test_lone_opening_that_ends_4102_is_forgotten(start, server, eventually):
    server.refuse_data = [4102]
    machine = await start()
    await server.order(uuid.uuid4())
    await eventually(lambda: not machine.sessions._tasks and not server.refuse_data)
    assert not machine.sessions.report()
    assert not machine.sessions.unrecorded()


async def test_an_opening_that_the_relay_ended_is_hung_up_by_the_relay(start, server, eventually):
    """Its code tells which side was missed (L2)."""
    machine = await start()
    device, side = await machine.session()
    session = machine.sessions._running[device.session_id]
    await server.say(frames.HostSessionClose(session_id=device.session_id, reason="open_failed"))
    await eventually(lambda: session.over)
    await (await side.connection.ping())  # what hangs up at once has done so by now
    await side.connection.close(4102)
    assert side.connection.close_code == 4102
    await eventually(lambda: not machine.sessions._tasks)


async def test_secrets_are_nowhere_in_the_shell(start, monkeypatch):
    monkeypatch.setenv("BOTHY_SECRET", "canary-in-the-environment")
    machine = await start()
    device, side = await machine.session()
    await device.open(side)
    await device.type(b"echo pid=$$.; ls /proc/$$/fd | tr '\\n' ' '; echo e''nd\n")
    await device.shows(b"end")
    output = bytes(device.output).replace(b"pid=$$", b"")
    pid = int(output.split(b"pid=")[1].split(b".")[0])
    environment, command, links = _seen_from_outside(pid)
    names = {entry.split(b"=")[0].decode() for entry in environment.split(b"\0") if entry}
    assert names <= {"PATH", "LANG", "TERM", "HOME", "SHELL", "USER", "LOGNAME", "PS1", "HISTFILE"} | {
        name for name in os.environ if name.startswith("LC_")
    }
    for secret in (machine.state.signing_key, machine.state.channel_key):
        for spelled in (secret, secret.hex().encode(), base64.b64encode(secret)):
            assert spelled not in environment + command
    assert all(link.startswith("/dev/pts/") or link == "/dev/tty" for link in links), links


def _zombies_of(parent: int) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] == "Z" and int(fields[1]) == parent:
                found.append(entry.name)
    return found


def _terminals() -> int:
    """How many this process holds: one is there as long as its master is open."""
    count = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # that of the listing
            count += descriptor.readlink().name == "ptmx"
    return count


def _seen_from_outside(pid: int) -> tuple[bytes, bytes, list[str]]:
    """Environment, command line and open files of a process."""
    process = Path(f"/proc/{pid}")
    links = [str(entry.readlink()) for entry in (process / "fd").iterdir()]
    return (process / "environ").read_bytes(), (process / "cmdline").read_bytes(), links
