"""Flow control with everything real: nginx, two nodes, ``bothy-host``, ``bothy`` on a pseudo-terminal, and a slow way."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import psycopg
import pytest

from bothy_kit.demo_check import Screen, on_terminal
from bothy_kit.fake_device import FakeDevice
from bothy_kit.fake_host import FakeHost
from bothy_kit.programs import command
from bothy_kit.sockets import FakeSide
from bothy_kit.spoilable_world import SpoilableWorld, Terms, spoilable_world
from bothy_kit.world_parts import HOST
from bothy_wire.frames import HostSessionOpen, SidePaired
from bothy_wire.ids import HostId

KB, MB = 1000, 1000_000
TERMS = Terms(
    server={"BOTHY_WIRE__PING_INTERVAL": "2s", "BOTHY_WIRE__PING_TIMEOUT": "3s"},
    host="[host]\nping_interval = 2\nping_timeout = 3\n",
    device="[wire]\nping_interval = 2\nping_timeout = 3\n",
)
"""A connection without a byte for five seconds is given up."""
OBEYS_S = 5.0
OWN_WORDS = re.compile(rb"\x1b7.*?\x1b8", re.DOTALL)
"""The status line of ``bothy``, which comes between the bytes of the program."""
NODE_BYTES = 8 * MB
"""More than one stalled session may cost a node, both sides of it and what Python does not give back together."""


@pytest.fixture(scope="module")
def world() -> Iterator[SpoilableWorld]:
    with spoilable_world(lambda _: None, TERMS) as running:
        yield running
        running.check()


@pytest.fixture(autouse=True)
def healed(world: SpoilableWorld) -> Iterator[None]:
    yield
    world.device_network.heal()
    world.host_network.heal()


def opened(world: SpoilableWorld) -> AbstractContextManager[tuple[Screen, object]]:
    return on_terminal([command("bothy"), "open", HOST], world.device)


def plain_shell(screen: Screen) -> None:
    screen.type(b"exec sh\n")
    screen.type(b"PS1= PS2=; stty -echo; echo he''re\n")
    screen.expect(rb"here\r\n")


def obeys(screen: Screen, keys: bytes = b"\x03") -> float:
    """Seconds until the shell goes on."""
    begun = time.monotonic()
    screen.type(keys + b"echo st''opped\n")
    screen.expect(rb"stopped\r\n")
    return time.monotonic() - begun


def resident_bytes(world: SpoilableWorld) -> int:
    """Of both nodes."""
    pages = (Path(f"/proc/{each.pid}/statm").read_text().split()[1] for each in world.nodes.values())
    return 4096 * sum(map(int, pages))


def pairings(world: SpoilableWorld) -> int:
    """How often the two sides of a session met."""
    with psycopg.connect(world.database) as connection:
        (row,) = connection.execute("SELECT sum(paired_seq) FROM terminal_sessions")
    return int(row[0])


@pytest.mark.parametrize("slow", ["device", "host"])
def test_ctrl_c_under_a_flood_on_a_slow_way(world, slow) -> None:
    """At 32 kB/s a window that does not follow the way would hold Ctrl-C up for 8 s."""
    with opened(world) as (screen, _):
        plain_shell(screen)
        network = world.device_network if slow == "device" else world.host_network
        network.slow(delay_s=0.05, up=32 * KB, down=32 * KB)
        screen.type(b"yes 0123456789abcdefghijklmnopqrstuvwxyz\n")
        screen.expect(b".{%d}" % (220 * KB))
        assert obeys(screen) < OBEYS_S
        screen.type(b"yes again\n")
        screen.expect(b"again\r\n.{%d}" % (32 * KB))
        assert obeys(screen) < OBEYS_S


@pytest.mark.parametrize("slow", ["device", "host"])
def test_a_slow_way_that_lives_is_not_cut(world, slow) -> None:
    """A record takes eight seconds to arrive, and until it has nothing answers it."""
    with opened(world) as (screen, _):
        plain_shell(screen)
        network = world.device_network if slow == "device" else world.host_network
        network.slow(delay_s=0.05, up=4 * KB, down=4 * KB)
        before = pairings(world)
        screen.type(b"head -c %d /dev/zero | tr '\\0' x; echo en''d\n" % (40 * KB))
        screen.expect(b"x{%d}end\r\n" % (40 * KB))
        assert pairings(world) == before


def test_keys_behind_a_paste_keep_their_place_on_a_slow_way(world) -> None:
    paste = b"".join(b"%06d a line of what was pasted\n" % number for number in range(8000))
    with opened(world) as (screen, _):
        plain_shell(screen)
        world.device_network.slow(delay_s=0.05, up=64 * KB, down=64 * KB)
        screen.type(b"stty raw; echo rea''dy; head -c %d | sha256sum; read -r after; stty sane -echo\n" % len(paste))
        screen.expect(b"ready")
        screen.type(paste + b"typed behind it\n")
        assert screen.expect(rb"([0-9a-f]{64})  -")[1].decode() == hashlib.sha256(paste).hexdigest()
        screen.type(b'echo "<$after>"\n')
        screen.expect(b"<typed behind it>")
        screen.type(b"stty echo; cat\n" + paste[: 100 * KB])  # echoed, and printed by cat, both at once
        screen.type(b"\x03")
        screen.expect(rb"\^C")  # keys right behind it could still be read by the dying cat
        assert obeys(screen, b"") < OBEYS_S


def test_ctrl_s_and_ctrl_q_are_the_remote_terminals(world) -> None:
    with opened(world) as (screen, _):
        plain_shell(screen)
        screen.type(b"yes\n")
        screen.expect(b".{%d}" % (100 * KB))
        screen.type(b"\x13")
        screen.quiet(1.0)
        screen.type(b"\x11")
        screen.expect(b".{%d}" % (2 * MB))
        screen.type(b"\x13")
        screen.quiet(1.0)
        assert obeys(screen) < OBEYS_S


def test_a_terminal_that_takes_nothing_blocks_its_program_and_nobody_else(world) -> None:
    blocks, block = 48, b"".join(b"%015d\n" % number for number in range(4096))
    (world.folder / "block").write_bytes(block)
    counted = world.folder / "counted"
    before = resident_bytes(world)
    with opened(world) as (stalled, _), opened(world) as (other, _):
        plain_shell(stalled)
        plain_shell(other)
        stalled.type(
            b"stty -opost; echo beg''in; for n in $(seq %d); do cat %s; echo $n > %s; done; echo en''d\n"
            % (blocks, bytes(world.folder / "block"), bytes(counted))
        )
        stalled.expect(b"begin\n")
        done = settled(counted)
        assert done < blocks // 2
        for _ in range(20):
            assert obeys(other, b"") < 2.0
        assert settled(counted) == done
        assert resident_bytes(world) - before < NODE_BYTES
        met = pairings(world)
        world.device_network.cut()  # with the window full
        shown = stalled.expect(b"end\n")
        printed = OWN_WORDS.sub(b"", shown.string[: shown.start()])
        assert hashlib.sha256(printed).digest() == hashlib.sha256(block * blocks).digest()
        assert pairings(world) > met


def settled(counted: Path) -> int:
    """The number in the file when it has not changed for two seconds."""
    number, since = "", time.monotonic()
    while time.monotonic() < since + 2:
        with suppress(FileNotFoundError):
            if (now := counted.read_text()) and now != number:
                number, since = now, time.monotonic()
        time.sleep(0.05)
    return int(number or 0)


async def test_a_side_that_takes_nothing_costs_its_node_a_bounded_amount(world) -> None:
    """A host that keeps to no window; what is on its way is in buffers of the kernel and of the edge, which have bounds."""
    blocks, block = 1500, bytes(range(256)) * 234
    url = world.edge.url
    async with FakeDevice(url, url) as device, FakeHost(url, url) as host:
        assert (await device.redeem(world.invite(), "stalled")).status == 201
        assert (await device.login()).status == 200
        assert (await host.pair(world.add_host("lab-2"))).status_code == 201
        stalled, flood = await paired(device, host)
        other, echo = await paired(device, host)
        before = resident_bytes(world)
        progress = [0]

        async def send() -> None:
            for number in range(blocks):
                await flood.send(block)
                progress.append(number)

        sending = asyncio.create_task(send())
        assert 0 < await settled_at(progress) < blocks - 1
        for number in range(50):
            begun = time.monotonic()
            await other.send(b"key %d" % number)
            await echo.send(await echo.receive())
            assert await other.receive() == b"key %d" % number
            assert time.monotonic() - begun < 2.0
        assert resident_bytes(world) - before < NODE_BYTES
        for _ in range(blocks):
            assert await stalled.receive() == block
        await sending
        for each in (stalled, flood, other, echo):
            each.cut()
        await host.control.close()


async def paired(device: FakeDevice, host: FakeHost) -> tuple[FakeSide, FakeSide]:
    control = host.control or await host.connect()
    stream = await device.open(HostId(host.host_id))
    await control.expect(HostSessionOpen)
    client, data = await device.dial(stream), await host.dial(stream.session_id)
    await client.expect(SidePaired)
    await data.expect(SidePaired)
    return client, data


async def settled_at(progress: list[int]) -> int:
    """The last number when it has not changed for a second."""
    before = -1
    while progress[-1] != before:
        before = progress[-1]
        await asyncio.sleep(1.0)
    return before
