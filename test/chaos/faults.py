"""What befalls a session. Each fault breaks something, yields the moment from which the person waits, and mends it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from stage import Stage

from bothy_kit.network import Direction, Network
from bothy_kit.person import RESET, PersonError, person
from bothy_kit.programs import command
from bothy_kit.world_parts import Node

_DRAIN_S = 120.0
_CUT_WITHIN_S = 5.0
_FAR_S, _SLOW = 0.1, 64_000
"""Seconds of each direction, and bytes per second."""
_MUCH, _LITTLE = 100_000, 1_000
"""Bytes that pass within a second or two: output, and keys with acknowledgements."""

Fault = Callable[[Stage], AbstractContextManager[float]]


@contextmanager
def kill_node(stage: Stage) -> Iterator[float]:
    """The node that relays ends without a word."""
    node = stage.relay()
    begun = time.monotonic()
    stage.world.nodes[node].kill()
    try:
        yield begun
    finally:
        _start(stage, node)


@contextmanager
def drain_node(stage: Stage) -> Iterator[float]:
    """The node that relays is asked to end."""
    node = stage.relay()
    begun = time.monotonic()
    _drain(stage, node)
    try:
        yield begun
    finally:
        _start(stage, node)


@contextmanager
def restart_nodes(stage: Stage) -> Iterator[float]:
    """Every node is asked to end and started again, one after the other."""
    begun = time.monotonic()
    for node in stage.world.nodes:
        _drain(stage, node)
        _start(stage, node)
    yield begun


@contextmanager
def restart_edge(stage: Stage) -> Iterator[float]:
    """nginx is stopped and started."""
    begun = time.monotonic()
    stage.world.edge.stop()
    stage.world.edge.start()
    yield begun


@contextmanager
def stop_database(stage: Stage) -> Iterator[float]:
    """PostgreSQL is away for a while."""
    begun = time.monotonic()
    stage.world.postgres.stop()
    time.sleep(stage.scale.database_s)
    stage.world.postgres.start()
    stage.world.postgres.wait()
    yield begun


@contextmanager
def sleep_device(stage: Stage) -> Iterator[float]:
    """The lid is closed for longer than every time limit; what stood open did not survive it."""
    stage.person.keep_typing(on=False)
    stage.person.sleep()
    time.sleep(stage.scale.asleep_s)
    stage.world.device_network.cut()
    stage.person.wake()
    stage.person.keep_typing()
    yield time.monotonic()


@contextmanager
def lose_device(stage: Stage) -> Iterator[float]:
    """The device's network is silent for longer than every time limit, and has forgotten what stood open."""
    yield from _lost([stage.world.device_network], stage.scale.asleep_s)


@contextmanager
def lose_host(stage: Stage) -> Iterator[float]:
    """The host's network is silent for longer than a missed ping, and has forgotten what stood open."""
    yield from _lost([stage.world.host_network], stage.scale.outage_s)


@contextmanager
def lose_both(stage: Stage) -> Iterator[float]:
    """Both networks at once."""
    yield from _lost([stage.world.device_network, stage.world.host_network], stage.scale.outage_s)


@contextmanager
def cut_both(stage: Stage) -> Iterator[float]:
    """All connections of both are reset at once."""
    begun = time.monotonic()
    stage.world.device_network.cut()
    stage.world.host_network.cut()
    yield begun


@contextmanager
def cut_slow(stage: Stage) -> Iterator[float]:
    """The device's connections are reset while its network is slow and far away, and stays so."""
    network = stage.world.device_network
    network.slow(delay_s=_FAR_S, up=_SLOW, down=_SLOW)
    try:
        stage.person.wait_for_echo()
        begun = time.monotonic()
        network.cut()
        yield begun
    finally:
        network.heal()


@contextmanager
def cut_somewhere(stage: Stage) -> Iterator[float]:
    """A connection ends behind any byte, in any direction, while both ways are busy."""
    device, host = _networks(stage)
    ways: tuple[tuple[Network, Direction, int], ...] = (
        (device, "up", _LITTLE),
        (device, "down", _MUCH),
        (host, "up", _MUCH),
        (host, "down", _LITTLE),
    )
    way, direction, most = stage.chance.choice(ways)
    happened = way.cut_after(stage.chance.randrange(most), direction)
    if not happened.wait(_CUT_WITHIN_S):
        way.cut()  # so few bytes pass where nothing is typed for a while
    yield time.monotonic()


def half_close(network: int, direction: Direction) -> Fault:
    """A fault: one direction of one network ends, and the other one goes on."""

    @contextmanager
    def fault(stage: Stage) -> Iterator[float]:
        begun = time.monotonic()
        _networks(stage)[network].half_close(direction)
        yield begun

    return fault


def cut_in_header(network: int, direction: Direction, count: int) -> Fault:
    """A fault: the next frame of a quiet session ends behind so many bytes."""

    @contextmanager
    def fault(stage: Stage) -> Iterator[float]:
        stage.person.keep_typing(on=False)
        stage.person.wait_for_echo()
        _networks(stage)[network].cut_after(count, direction)
        begun = time.monotonic()
        stage.person.type(b"k" * 200)
        yield begun

    return fault


@contextmanager
def second_device(stage: Stage) -> Iterator[float]:
    """Another device of the same person takes the session and types; then the first one takes it back."""
    stage.person.keep_typing(on=False)
    stage.person.wait_for_echo()
    other = stage.world.another_device(f"phone-{stage.session_id}")
    with person([command("bothy"), "attach", stage.session_id], other, typed=stage.person.typed) as elsewhere:
        elsewhere.wait_for_echo()
        stage.person.wait(lambda: stage.person.sees(b"Enter takes it back"), "the first device is not told")
        begun = time.monotonic()
        stage.person.type(b"\r", counts=False)
        stage.person.wait(lambda: stage.person.sees(RESET), "no repaint")
        yield begun


def _lost(networks: Sequence[Network], seconds: float) -> Iterator[float]:
    for each in networks:
        each.forget()
        each.silence()
    time.sleep(seconds)
    begun = time.monotonic()
    for each in networks:
        each.heal()
    yield begun


def _drain(stage: Stage, node: Node) -> None:
    """Raises :class:`PersonError` when it has to be killed in the end."""
    status = stage.world.nodes[node].stop(within_s=_DRAIN_S)
    if status != 0:
        raise PersonError(f"{node.name} was asked to end and ended with {status}")


def _start(stage: Stage, node: Node) -> None:
    stage.world.nodes[node].start()
    stage.world.wait_ready(node)


def _networks(stage: Stage) -> Sequence[Network]:
    return stage.world.device_network, stage.world.host_network
