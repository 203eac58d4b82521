"""The real program on a real pseudo-terminal, against a relay and a host on real sockets."""

import asyncio
import hashlib
import os
import signal
import sys
import termios
from pathlib import Path

import pytest

from bothy_wire.signing import fingerprint


async def opened(relay, person):
    """The terminal is reached: the repaint stands on the screen."""
    await relay.host.until(lambda: relay.host.sizes)
    await person.until(b"\x1bc$ ")
    return person


async def test_what_is_typed_arrives_and_the_exit_status_is_ours(relay, sit):
    person = await opened(relay, sit("open", "lab-1"))
    assert person.raw()
    await person.type(b"ls\x03\x1a\x04\x1c")
    await relay.host.until(lambda: bytes(relay.host.typed) == b"ls\x03\x1a\x04\x1c")
    await relay.host.print(b"files\r\n")
    await relay.host.exit(7)
    assert await person.ended() == 7
    assert b"files\r\n" in person.screen
    assert person.settings() == person.before
    await relay.host.until(lambda: relay.host.end.exit_acknowledged)
    assert relay.host.terms == ["xterm-256color"]


async def test_no_secret_travels_in_an_address(relay, sit):
    await opened(relay, sit("open", "lab-1"))
    assert b"stream-token" not in b"".join(relay.upgrades)
    assert len(relay.upgrades) == 1
    assert not [path for _, path, _, _ in relay.requests if "token-" in path or "access-" in path]


async def test_4100_without_an_exit_is_255_and_says_why(relay, sit):
    person = await opened(relay, sit("open", "lab-1"))
    await relay.side.close(4100, "idle")
    assert await person.ended() == 255
    assert "\nbothy: closed by the relay: idle (nothing was typed or printed for too long)" in person.text()
    assert person.settings() == person.before


async def test_without_reconnecting_a_lost_connection_says_how_to_go_on(relay, sit):
    person = await opened(relay, sit("open", "--no-reconnect", "lab-1"))
    relay.cut()
    assert await person.ended() == 255
    assert f"\nbothy: the connection was lost; the session goes on: bothy attach {relay.session_id}" in (person.text())
    assert person.settings() == person.before


async def test_a_relay_that_fell_silent_is_a_lost_connection(relay, sit, home):
    (home / "config.toml").write_text("[wire]\nping_interval = 0.3\nping_timeout = 2.0\n")
    person = await opened(relay, sit("open", "--no-reconnect", "lab-1"))
    await relay.pings(3)
    assert person.process.poll() is None
    relay.freeze()
    assert await person.ended() == 255
    assert "the connection fell silent; the session goes on: bothy attach" in person.text()


async def test_leaving_does_not_wait_for_a_relay_that_takes_nothing(relay, sit):
    person = await opened(relay, sit("open", "lab-1"))
    relay.freeze()
    await person.type(b"\r~.")
    assert await person.ended() == 0


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130), (signal.SIGQUIT, 131)]
)
async def test_a_signal_gives_the_terminal_back(relay, sit, number, status):
    person = await opened(relay, sit("open", "lab-1"))
    person.process.send_signal(number)
    assert await person.ended() == status
    assert person.settings() == person.before
    assert f"bothy attach {relay.session_id}" in person.text()


async def test_leaving_keeps_the_session(relay, sit):
    person = await opened(relay, sit("open", "lab-1"))
    await person.type(b"\r~.")
    assert await person.ended() == 0
    assert f"bothy: left; the session goes on: bothy attach {relay.session_id}" in person.text()
    assert person.settings() == person.before
    await relay.host.until(lambda: relay.closed_with == 1000)
    assert bytes(relay.host.typed) == b"\r"


async def test_modes_that_the_program_left_on_go_off(relay, sit):
    person = await opened(relay, sit("open", "lab-1"))
    await relay.host.print(b"\x1b[?1049h\x1b[?2004h\x1b[?1003hedit")
    await person.until(b"edit")
    await person.type(b"\r~.")
    assert await person.ended() == 0
    after = bytes(person.screen[person.screen.index(b"edit") :])
    assert b"\x1b[?2004l\x1b[?1003l\x1b[?1049l" in after


async def test_the_size_at_the_start_and_after_a_storm_of_changes(relay, sit):
    person = await opened(relay, sit("open", "lab-1", columns=132, rows=43))
    assert relay.host.sizes == [(132, 43)]
    for columns in range(60, 101):
        person.resize(columns, 30)
    person.resize(101, 37)
    await relay.host.until(lambda: relay.host.sizes[-1] == (101, 37))
    assert len(relay.host.sizes) < 20


async def test_a_change_of_size_before_the_pairing_is_the_size(relay, sit):
    relay.pairs = False
    person = sit("open", "lab-1", columns=132, rows=43)
    await person.until(b"waiting for lab-1; Ctrl-C gives up")
    person.resize(90, 30)
    await asyncio.sleep(0.2)
    await relay.pair()
    await relay.host.until(lambda: relay.host.sizes)
    assert relay.host.sizes[-1] == (90, 30)


async def test_a_terminal_without_a_size_is_80_by_24(relay, sit):
    await opened(relay, sit("open", "lab-1", columns=0, rows=0))
    assert relay.host.sizes == [(80, 24)]


async def test_ctrl_c_gives_up_before_the_terminal_is_reached(relay, sit):
    relay.pairs = False
    person = sit("open", "lab-1")
    await person.until(b"waiting for lab-1; Ctrl-C gives up")
    assert not person.raw()
    await person.type(b"\x03")
    assert await person.ended() == 130
    assert person.settings() == person.before


async def test_a_paste_of_200000_bytes_arrives_exactly(relay, sit):
    person = await opened(relay, sit("open", "lab-1"))
    paste = b"\x1b[200~" + b"".join(b"line %d ~.\r~.\r" % number for number in range(13_000)) + b"\x1b[201~"
    assert len(paste) > 200_000
    await person.type(paste)
    await relay.host.until(lambda: len(relay.host.typed) >= len(paste))
    assert bytes(relay.host.typed) == paste


async def test_escapes_work_while_a_paste_waits(relay, sit):
    person = await opened(relay, sit("open", "lab-1"))
    relay.host.stuck = True
    await person.type(b"x" * 100_000 + b"\r")
    await person.until(b"bytes waiting, ~D drops them")
    await person.type(b"~D")
    await person.until(b"bytes dropped")
    await person.type(b"~.")
    assert await person.ended() == 0
    assert len(relay.host.typed) == 65536


async def test_a_paste_beyond_the_limit_stops_the_keyboard_and_says_so(relay, sit, home):
    (home / "config.toml").write_text("[device]\npaste_bytes = 100_000\n")
    person = await opened(relay, sit("open", "lab-1"))
    relay.host.stuck = True
    typing = asyncio.create_task(person.type(b"y" * 300_000))
    await person.until(b"bytes waiting; keys are read again when a tenth is through")
    assert not typing.done()
    relay.host.stuck = False
    relay.host.read()
    await relay.host.flush()
    await typing
    await relay.host.until(lambda: len(relay.host.typed) == 300_000)
    await person.until(b"\x1b[2K")


async def test_five_megabytes_to_a_slow_reader_are_equal(relay, sit):
    person = await opened(relay, sit("open", "lab-1"))
    output = os.urandom(5_000_000).replace(b"\x1b", b"e")
    person.screen.clear()
    person.look_away()
    printing = asyncio.create_task(relay.host.print(output))
    await person.type(b"\x03")
    await relay.host.until(lambda: b"\x03" in relay.host.typed)
    assert not printing.done()
    person.look()
    await printing
    await relay.host.exit(0)
    assert await person.ended() == 0
    assert hashlib.sha256(person.screen[: len(output)]).digest() == hashlib.sha256(output).digest()


async def test_leaving_works_while_nobody_reads_the_output(relay, sit):
    person = await opened(relay, sit("open", "lab-1"))
    person.look_away()
    printing = asyncio.create_task(relay.host.print(b"z" * 400_000))
    # The last output that is acknowledged is in the terminal, and what follows finds it full.
    await relay.host.quiet()
    await person.type(b"\r~.")
    assert await person.ended() == 0
    assert person.settings() == person.before
    printing.cancel()


async def test_characters_that_are_cut_and_bytes_that_are_none(relay, sit):
    person = await opened(relay, sit("open", "lab-1"))
    person.screen.clear()
    for piece in (b"\xe2", b"\x82", b"\xac", b"\xff\xfe\x80", b"end"):
        await relay.host.print(piece)
    await person.until(b"end")
    assert bytes(person.screen) == b"\xe2\x82\xac\xff\xfe\x80end"
    await person.type(b"\xe2")
    await relay.host.until(lambda: relay.host.typed)
    await person.type(b"\x82\xac\xff")
    await relay.host.until(lambda: bytes(relay.host.typed) == b"\xe2\x82\xac\xff")


async def test_an_interrupted_host_is_waited_for(relay, sit):
    person = await opened(relay, sit("open", "lab-1"))
    await relay.unpair()
    await person.until(b"lab-1 is away; waiting; Ctrl-C gives up")
    await relay.host.until(lambda: relay.readies == 1)
    await person.type(b"kept")
    await person.until(b"4 keys waiting, Ctrl-C drops them")
    assert bytes(relay.host.typed) == b""
    await relay.pair()
    await relay.host.until(lambda: bytes(relay.host.typed) == b"kept")
    await person.until(b"\x1b[2K")
    await relay.host.exit(0)
    assert await person.ended() == 0
    assert relay.readies == 1


async def test_a_full_screen_program_draws_anew_what_the_line_covered(relay, sit):
    person = await opened(relay, sit("open", "lab-1"))
    await relay.host.print(b"\x1b[?1049h")
    relay.host.stuck = True
    await person.type(b"x")
    await person.until(b"1 bytes waiting")
    assert relay.host.sizes == [(80, 24)]
    relay.host.read()
    await relay.host.flush()
    await relay.host.until(lambda: len(relay.host.sizes) == 3)
    assert relay.host.sizes[1:] == [(80, 23), (80, 24)]


async def test_keys_beyond_the_buffer_ring_the_bell_in_an_outage(relay, sit, home):
    (home / "config.toml").write_text("[device]\ninput_buffer_bytes = 10\n")
    person = await opened(relay, sit("open", "lab-1"))
    await relay.unpair()
    await person.until(b"lab-1 is away")
    await person.type(b"0123456789")
    await person.until(b"10 keys waiting")
    await person.type(b"abc")
    await person.until(b"\a")
    await relay.pair()
    await relay.host.until(lambda: bytes(relay.host.typed) == b"0123456789")


async def test_a_notice_is_shown_as_words(relay, sit):
    person = await opened(relay, sit("open", "lab-1"))
    await relay.host.notice("ends in 60 s\x1b]0;title\x07")
    await person.until(b"\r\nends in 60 s ]0;title\r\n")


async def test_help(relay, sit):
    person = await opened(relay, sit("open", "lab-1"))
    await person.type(b"~?")
    await person.until(b"(at the start of a line only)\r\n")
    assert f"session {relay.session_id} on lab-1" in person.text()
    await person.until(b"\r\nround trip ")
    assert bytes(relay.host.typed) == b""


async def test_suspended_and_continued(relay, sit):
    person = await opened(relay, sit("open", "lab-1"))
    await person.type(b"\r~\x1a")
    # The test's session has no shell with job control: the kernel lets nothing stop, and the terminal is raw again.
    await person.type(b"on")
    await relay.host.until(lambda: bytes(relay.host.typed) == b"\ron")
    assert person.raw()


@pytest.mark.parametrize("by_escape", [True, False])
async def test_suspended_in_a_shell_and_continued(relay, sit, by_escape):
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    options = {"program": "bash", "environment": {"PATH": path, "PS1": "ready> "}}
    person = sit("--norc", "--noprofile", "-i", **options)
    await person.until(b"ready> ")
    await person.type(b"before=$(stty -g); bothy open lab-1; echo status=$?\r")
    await opened(relay, person)
    if by_escape:
        await person.type(b"\r~\x1a")
    else:
        os.kill(person.child(), signal.SIGTSTP)
    await person.until(b"Stopped")
    await person.type(b'[ "$(stty -g)" = "$before" ] && echo the same; fg\r')
    await person.until(b"\rthe same\r\n")
    await person.until_raw()
    await person.type(b"on")
    await relay.host.until(lambda: bytes(relay.host.typed).endswith(b"on"))
    await relay.host.exit(4)
    await person.until(b"ready> ", start=person.screen.index(b"\rthe same"))
    await person.type(b"exit\r")
    await person.ended()


async def test_stopped_from_outside_and_continued_is_raw_again(relay, sit):
    person = await opened(relay, sit("open", "lab-1"))
    person.process.send_signal(signal.SIGSTOP)
    await person.stopped()
    termios.tcsetattr(person.slave, termios.TCSANOW, person.before)
    person.process.send_signal(signal.SIGCONT)
    await person.until_raw()
    await relay.host.exit(0)
    assert await person.ended() == 0
    assert person.settings() == person.before


async def test_a_refusal_by_the_host_says_what_to_do(relay, sit):
    relay.host.refusal = "device_not_authorized"
    person = sit("open", "lab-1")
    assert await person.ended() == 255
    assert (
        "bothy: the host's operator has not listed this device; give them the line of bothy device show"
        in person.text()
    )
    await relay.host.until(lambda: relay.closed_with == 1000)


async def test_a_refusal_at_identify_says_what_it_means(relay, sit):
    relay.stream_close = (4101, "unknown")
    person = sit("open", "lab-1")
    assert await person.ended() == 255
    assert "bothy: the relay closed the connection: the relay does not know this session or this key" in person.text()


async def test_an_opening_that_failed_says_the_detail(relay, sit):
    relay.stream_close = (4100, "open_failed")
    relay.close_detail = "local_confirm_denied"
    person = sit("open", "lab-1")
    assert await person.ended() == 255
    assert "open_failed/local_confirm_denied (the person at the host did not allow it)" in person.text()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("device_revoked", "this device was revoked; run bothy logout, then bothy login with a new invite"),
        ("person_disabled", "your account was disabled; ask an operator of the relay"),
    ],
)
async def test_a_terminal_whose_device_is_revoked_says_so_in_one_line(relay, sit, code, words):
    """The close reason is the same for a right, a device and an account; the relay tells who holds the key which it was."""
    person = await opened(relay, sit("open", "lab-1"))
    relay.tokens += 1  # the access token counts no more
    relay.refusals["/auth/token"] = (401, code, {})
    await relay.side.close(4100, "revoked")
    assert await person.ended() == 255
    assert person.text().splitlines()[-1] == f"bothy: closed by the relay: {words}"


async def test_a_terminal_whose_right_was_taken_says_so(relay, sit):
    person = await opened(relay, sit("open", "lab-1"))
    await relay.side.close(4100, "revoked")
    assert await person.ended() == 255
    assert person.text().splitlines()[-1] == (
        "bothy: closed by the relay: revoked (the right has ended, or the device or the account was taken away)"
    )


async def test_the_key_of_a_first_connection_is_shown_and_not_cleared_away(relay, sit, home):
    (home / "known_hosts").unlink()
    person = await opened(relay, sit("open", "lab-1"))
    words = f"first connection to lab-1: pinned its key {fingerprint(relay.host_public)}\r\n".encode()
    await person.until(words, start=person.screen.index(b"\x1bc"))
    assert b"bothy: " + words in person.screen


async def test_attach_shows_the_repaint(relay, sit):
    person = await opened(relay, sit("attach", str(relay.session_id)[:8]))
    await relay.host.exit(3)
    assert await person.ended() == 3
    assert relay.requests[-1][2] == {"step_up_id": None}


async def test_piped_input_arrives_and_no_byte_is_added(relay, login, bothy):
    running = asyncio.create_task(bothy("open", "lab-1", stdin=b"echo \xe2\x82\xac\n~.\nexit\n" * 1000))
    await relay.host.until(lambda: len(relay.host.typed) == 17_000)
    await relay.host.print(b"\x1b[31m\xff\r\n" * 10_000)
    await relay.host.exit(5)
    status, out, err = await running
    assert (status, bytes(relay.host.typed)) == (5, b"echo \xe2\x82\xac\n~.\nexit\n" * 1000)
    assert out == b"\x1bc$ " + b"\x1b[31m\xff\r\n" * 10_000
    assert relay.host.sizes == [(80, 24)]
    assert err.startswith("bothy: first connection to lab-1: pinned its key SHA256:")


async def test_without_a_terminal_the_size_comes_from_the_environment(relay, login, bothy):
    running = asyncio.create_task(bothy("open", "lab-1", environment={"COLUMNS": "120", "LINES": "50"}))
    await relay.host.until(lambda: relay.host.sizes)
    await relay.host.exit(0)
    await running
    assert relay.host.sizes == [(120, 50)]
