from __future__ import annotations

import asyncio
import os
import pwd
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bothy_host import processes
from bothy_host.accounts import account_for
from bothy_host.program import Program, environment
from bothy_host.pty import Pty, SpawnError, exit_text

ME = pwd.getpwuid(os.geteuid()).pw_name
ACCOUNT = account_for(ME, [ME], allow_root=True)


class Heard:
    """A listener that keeps everything; ``want`` is how much it asks for."""

    def __init__(self) -> None:
        self.want = 1 << 20
        self.output = b""
        self.typed = 0
        self.words: list[str] = []
        self.status: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def wants(self) -> int:
        return self.want

    def printed(self, data: bytes) -> None:
        self.output += data

    def taken(self, count: int) -> None:
        self.typed += count

    def started(self) -> None:
        self.words.append("started")

    def failed(self, reason: str) -> None:
        self.words.append(reason)

    def exited(self, status: int) -> None:
        self.status.set_result(status)

    async def ends(self) -> int:
        return await asyncio.wait_for(self.status, 20)


def program(*command: str, **changed) -> Program:
    plain = Program(ACCOUNT, command or None, "/", environment(ACCOUNT, "xterm", {}))
    return replace(plain, **changed)


async def test_output_then_exit():
    heard = Heard()
    Pty(program("/bin/sh", "-c", "echo one; exit 3"), 80, 24, heard)
    assert await heard.ends() == 3
    assert heard.output == b"one\r\n"
    assert heard.words == ["started"]


async def test_login_shell_knows_that_it_is_one():
    heard = Heard()
    account = replace(ACCOUNT, shell="/bin/sh")
    pty = Pty(program(account=account), 80, 24, heard)
    pty.write(b"echo $0.; exit\n")
    await heard.ends()
    assert b"-sh." in heard.output


async def test_a_signal_is_128_and_its_number():
    heard = Heard()
    Pty(program("/bin/sh", "-c", "kill -9 $$"), 80, 24, heard)
    assert await heard.ends() == 137
    assert exit_text(137) == "ended by SIGKILL"
    assert exit_text(3) == "exited with 3"


async def test_paused_output_is_read_to_its_end_at_the_exit():
    heard = Heard()
    heard.want = 0
    Pty(program("/bin/sh", "-c", "echo kept"), 80, 24, heard)
    await heard.ends()
    assert heard.output == b"kept\r\n"


async def test_own_session_own_terminal_default_signals():
    heard = Heard()
    command = 'ps -o sid= -p $$; echo $$; tty; cat /proc/self/status | grep -E "Sig(Blk|Ign)"'
    Pty(program("/bin/bash", "-c", command), 80, 24, heard)
    await heard.ends()
    session, leader, tty, blocked, ignored = (line.strip() for line in heard.output.decode().splitlines())
    assert session == leader
    assert tty.startswith("/dev/pts/")
    settable = sum(1 << number - 1 for number in signal.valid_signals())  # two more belong to the C library
    assert [int(each.split()[1], 16) & settable for each in (blocked, ignored)] == [0, 0]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"command": ("/no/such",)}, "/no/such: No such file"),
        ({"command": ("/etc/passwd",)}, "/etc/passwd: Permission denied"),
        ({"folder": "/no/such/folder"}, "/no/such/folder: No such file"),
    ],
)
async def test_a_program_that_cannot_start_says_why(changed, reason):
    heard = Heard()
    Pty(program("/bin/true", **changed), 80, 24, heard)
    assert await heard.ends() == 126
    assert len(heard.words) == 1
    assert reason in heard.words[0]


async def test_a_missing_home_is_no_reason_to_fail():
    heard = Heard()
    account = replace(ACCOUNT, home="/no/such/home")
    Pty(program("/bin/pwd", folder=None, environment=environment(account, "xterm", {})), 80, 24, heard)
    await heard.ends()
    assert heard.output == b"/\r\n"


async def test_no_descriptor_is_left_open_when_nothing_starts(monkeypatch):
    before = _descriptors()
    monkeypatch.setattr("bothy_host.pty.sys.executable", "/no/such/python")
    with pytest.raises(SpawnError):
        Pty(program("/bin/true"), 80, 24, Heard())
    assert _descriptors() == before


async def test_input_nobody_takes_waits_without_spinning_and_holds_up_no_end():
    heard = Heard()
    pty = Pty(program("/bin/sh", "-c", "stty raw; exec <&- >&- 2>&-; sleep 0.5"), 80, 24, heard)
    pty.write(b"x" * 200_000)
    busy = time.process_time()
    await heard.ends()
    assert time.process_time() - busy < 0.25
    pty.write(b"late")
    pty.resize(10, 10)


async def test_forgotten_input_is_counted(eventually):
    heard = Heard()
    pty = Pty(program("/bin/sh", "-c", "stty raw -echo; echo on; exec sleep 9999"), 80, 24, heard)
    await eventually(lambda: b"on" in heard.output)
    pty.write(b"x" * 100_000)
    assert pty.forget_input() + heard.typed == 100_000
    await pty.end(0.2)


async def test_hup_then_kill_for_the_whole_process_session(eventually):
    heard = Heard()
    script = "trap '' HUP; (sleep 9999; true) & setsid sleep 0.2 & echo on; sleep 9999; sleep 9999"
    pty = Pty(program("/bin/bash", "-c", script), 80, 24, heard)
    await eventually(lambda: b"on" in heard.output)
    assert len(processes.members(pty.pid)) >= 3
    await asyncio.wait_for(pty.end(0.2), 20)
    assert processes.members(pty.pid) == []
    assert await heard.ends() == 137


async def test_a_background_job_is_left_by_a_normal_exit_and_holds_nothing_up():
    heard = Heard()
    pty = Pty(program("/bin/bash", "-c", "set -m; sleep 9999 & exit 4"), 80, 24, heard)
    assert await heard.ends() == 4
    (job,) = processes.members(pty.pid)
    os.kill(job, signal.SIGKILL)


async def test_what_is_in_the_foreground_hears_the_hangup_of_the_kernel(eventually):
    heard = Heard()
    pty = Pty(program("/bin/bash", "-c", "set -m; echo on; sleep 9999; true"), 80, 24, heard)
    await eventually(lambda: b"on" in heard.output and len(processes.members(pty.pid)) == 2)
    os.kill(pty.pid, signal.SIGKILL)
    assert await heard.ends() == 137
    await eventually(lambda: not processes.members(pty.pid))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
async def test_another_account_is_entered_completely():
    heard = Heard()
    account = account_for("nobody", ["nobody"], allow_root=False)
    command = "id -u; id -G; stat -c %U $(tty); cat /proc/$$/environ | tr '\\0' '\\n' | grep ^USER; head -c 1 /dev/tty"
    pty = Pty(
        program("/bin/sh", "-c", command, account=account, environment=environment(account, "xterm", {})), 80, 24, heard
    )
    pty.write(b"y\n")
    assert await heard.ends() == 0
    uid, groups, owner, user, *_ = heard.output.decode().replace("y\r\n", "", 1).splitlines()
    assert (int(uid), user, owner) == (account.uid, "USER=nobody", "nobody")
    assert {int(group) for group in groups.split()} == set(account.groups)


def _descriptors() -> set[str]:
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


async def test_a_program_may_close_its_terminal_and_open_it_again():
    heard = Heard()
    script = "exec <&- >&- 2>&-; sleep 0.2; exec </dev/tty >/dev/tty 2>&1; echo back; exit 3"
    Pty(program("/bin/bash", "-c", script), 80, 24, heard)
    assert await heard.ends() == 3
    assert b"back" in heard.output


async def test_last_output_of_many_short_programs_is_never_lost():
    for _ in range(60):
        heard = Heard()
        Pty(program("/bin/sh", "-c", "head -c 30000 /dev/zero | tr '\\0' z; exit 7"), 80, 24, heard)
        assert await heard.ends() == 7
        assert heard.output.count(b"z") == 30_000
