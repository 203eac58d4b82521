"""A dishonest server opens nothing on a host that lists its devices.

One host has ``authorized_devices``, the other one has not: it shows that each attempt is good enough where the server's word is
all there is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, LiteralString

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from bothy_kit.demo_check import on_terminal
from bothy_kit.dishonest_world import (
    ME,
    DishonestWorld,
    Machine,
    attached,
    dishonest_world,
    replayed,
    stream_of,
)
from bothy_kit.eventually import eventually
from bothy_kit.fake_device import FakeDevice
from bothy_kit.intruder import Intruder, rewriting
from bothy_kit.programs import ask, command
from bothy_kit.world_parts import log_in
from bothy_wire.ids import SessionId
from bothy_wire.signing import fingerprint


@pytest.fixture(scope="module")
def world(shared_database_url: str) -> Iterator[DishonestWorld]:
    with dishonest_world(shared_database_url) as running:
        yield running


def line_of(device: FakeDevice, options: str = "") -> str:
    return f"{fingerprint(device.channel_key.public_key().public_bytes_raw())} laptop {options}\n"


@contextmanager
def listing(host: Machine, lines: str) -> Iterator[None]:
    """The host's operator lists devices while the block runs."""
    host.listed.write_text(lines)
    try:
        yield
    finally:
        host.listed.write_text("")


async def closed_as(world: DishonestWorld, session_id: SessionId) -> tuple[Any, ...]:
    """Reason, detail and start of a session that is over."""

    def row() -> list[tuple[Any, ...]]:
        return world.sql(
            "SELECT close_reason, close_detail, started_at FROM terminal_sessions WHERE id = %(id)s AND state = 'closed'",
            id=session_id,
        )

    await eventually(lambda: bool(row()))
    return row()[0]


@pytest.mark.parametrize("way", ["opens_by_the_api", "opens_by_rows"])
async def test_a_device_of_the_servers_own_making_opens_nothing_on_a_host_that_lists_its_devices(
    world: DishonestWorld, way: str
) -> None:
    intruder, host = Intruder(world), world.careful
    async with intruder.device(host) as ghost, FakeDevice(world.url, world.url) as true:
        with listing(host, line_of(true)):
            stream = await getattr(intruder, way)(ghost, host)
            async with attached(ghost, host, stream) as channel:
                token = intruder.session_token(ghost, host, stream.session_id)
                assert await channel.shake_hands(token) == "device_not_authorized"
    assert await closed_as(world, stream.session_id) == ("open_failed", "refused", None)
    assert not host.ran(stream.session_id)
    assert host.told(stream.session_id, "authorized_devices has no line of SHA256:")
    assert host.told(stream.session_id, fingerprint(ghost.channel_key.public_key().public_bytes_raw()))


@pytest.mark.parametrize("way", ["opens_by_the_api", "opens_by_rows"])
async def test_where_no_devices_are_listed_the_same_device_gets_in_and_types(world: DishonestWorld, way: str) -> None:
    intruder, host, canary = Intruder(world), world.trusting, world.folder / f"canary-{way}"
    async with intruder.device(host) as ghost:
        stream = await getattr(intruder, way)(ghost, host)
        async with attached(ghost, host, stream) as channel:
            assert await channel.shake_hands(intruder.session_token(ghost, host, stream.session_id)) == "opened"
            await channel.run(f"touch {canary} && echo I am i''n", b"I am in")
    assert canary.exists()
    assert host.ran(stream.session_id)


@pytest.mark.parametrize("options", ["profiles=shell", "users=nobody"])
async def test_a_listed_device_opens_no_more_than_its_line_says_whatever_the_server_grants(
    world: DishonestWorld, options: str
) -> None:
    host = world.careful
    async with world.device() as device:
        with listing(host, line_of(device, options)):
            stream = stream_of(await device.try_open(host.id, "admin", ME))
            async with attached(device, host, stream, "admin") as channel:
                assert await channel.shake_hands() == "device_not_authorized"
    assert not host.ran(stream.session_id)
    assert host.told(stream.session_id, f"for admin as {ME}")


@pytest.mark.parametrize(("column", "value"), [("profile", "admin"), ('"session_user"', "nobody")])
async def test_another_profile_or_user_than_the_device_asked_for_runs_nothing(
    world: DishonestWorld, column: LiteralString, value: LiteralString
) -> None:
    asked = "shell" if column == "profile" else "admin"
    for host in (world.careful, world.trusting):
        async with world.device() as device:
            with listing(host, line_of(device)), rewriting(world, column, value):
                stream = stream_of(await device.try_open(host.id, asked, ME))
                if column == "profile" or os.geteuid() == 0:
                    async with attached(device, host, stream, asked) as channel:
                        assert await channel.shake_hands() == "profile_mismatch"
                    seen = "refused", "do not name the same profile and user"
                else:  # a service without rights becomes nobody else, whoever orders it
                    seen = "user_unknown", "cannot become nobody"
                assert await closed_as(world, stream.session_id) == ("open_failed", seen[0], None)
        assert not host.ran(stream.session_id)
        assert host.told(stream.session_id, seen[1])


async def test_what_a_listed_device_once_sent_starts_nothing_and_types_nothing(world: DishonestWorld) -> None:
    intruder, host, canary = Intruder(world), world.careful, world.folder / "canary-replayed"
    async with world.device() as device, intruder.device(host) as ghost:
        with listing(host, line_of(device)):
            stream = stream_of(await device.try_open(host.id, "shell", ME))
            async with attached(device, host, stream) as channel:
                assert await channel.shake_hands() == "opened"
                await channel.run(f"echo typed >> {canary}; echo do''ne", b"done")
            recorded = channel.sent

            # The session runs on, and the relay says that it is the ghost's.
            intruder.takes(ghost, host, stream.session_id)
            async with replayed(ghost, intruder.stream(ghost, host, stream.session_id)) as side:
                for message in recorded:
                    await side.send(message)
                await eventually(lambda: host.told(stream.session_id, "token_replayed"))

            # A service that was started anew has forgotten the token; the relay says that the session begins.
            host.restart()
            await closed_as(world, stream.session_id)
            intruder.begins_again(host, stream.session_id)
            async with replayed(ghost, intruder.stream(ghost, host, stream.session_id)) as side:
                await side.send(recorded[0])
                assert isinstance(await side.receive(), bytes), "the host takes the first message for a device's"
                for message in recorded[1:]:
                    await side.send(message)
                await eventually(lambda: host.told(stream.session_id, "a message does not open"))
    assert host.ran(stream.session_id) == 1
    assert canary.read_text() == "typed\n"


def test_a_host_key_that_the_server_changed_is_refused_by_the_pin(world: DishonestWorld) -> None:
    host, device = world.careful, log_in(world.folder / "device", world.url, "laptop", world.invite())
    line = ask("bothy", ["device", "show"], device).splitlines()[-1]
    words = [command("bothy"), "open", host.name, "--profile", "shell"]
    with listing(host, f"{line}\n"):
        with on_terminal(words, device) as (screen, ended):
            screen.type(b"exec sh\nPS1= PS2=; echo I am i''n\n")
            screen.expect(rb"I am in\r\n")
            screen.type(b"exit 0\n")
            screen.finish()
            assert ended() == 0
        started = host.started

        ((key,),) = world.sql("SELECT channel_key FROM hosts WHERE id = %(id)s", id=host.id)
        forged = X25519PrivateKey.generate().public_key().public_bytes_raw()
        world.sql("UPDATE hosts SET channel_key = %(key)s WHERE id = %(id)s", key=forged, id=host.id)
        try:
            with on_terminal(words, device) as (screen, ended):
                for shown in (key, forged):
                    screen.expect(re.escape(fingerprint(shown)).encode())
                screen.finish()
                assert ended() == 1
        finally:
            world.sql("UPDATE hosts SET channel_key = %(key)s WHERE id = %(id)s", key=key, id=host.id)
        assert host.started == started
