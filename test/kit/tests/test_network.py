"""Every fault of a network does what its name says, and its thread goes with the block."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from bothy_kit.network import Network, network

PATIENCE_S = 10.0
QUIET_S = 0.2


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE_S)
        yield listener


class Pair:
    """Both ends of one connection through a network."""

    def __init__(self, made: Network, server: socket.socket) -> None:
        self.here = socket.create_connection(("127.0.0.1", int(made.url.rpartition(":")[2])))
        self.there = server.accept()[0]
        for each in (self.here, self.there):
            each.settimeout(PATIENCE_S)
        self.here.sendall(b"?")  # the network has the connection when a byte has passed
        assert self.there.recv(1) == b"?"

    def close(self) -> None:
        self.here.close()
        self.there.close()


def read(end: socket.socket, count: int) -> bytes:
    """Exactly ``count`` bytes, or what came before the end."""
    data = b""
    while len(data) < count and (more := end.recv(count - len(data))):
        data += more
    return data


def quiet(end: socket.socket) -> bool:
    end.settimeout(QUIET_S)
    try:
        return end.recv(1) is None
    except TimeoutError:
        return True
    finally:
        end.settimeout(PATIENCE_S)


def test_a_network_carries_both_ways_and_passes_an_end_on(server) -> None:
    with network(server.getsockname()) as made, closing(Pair(made, server)) as pair:
        pair.here.sendall(b"up")
        assert read(pair.there, 2) == b"up"
        pair.here.shutdown(socket.SHUT_WR)
        assert pair.there.recv(1) == b""
        pair.there.sendall(b"down")
        pair.there.close()
        assert read(pair.here, 5) == b"down"


def test_what_is_sent_into_silence_arrives_after_the_healing(server) -> None:
    with (
        network(server.getsockname()) as made,
        closing(Pair(made, server)) as pair,
        closing(Pair(made, server)) as gone,
    ):
        made.silence()
        pair.here.sendall(b"meanwhile")
        gone.here.close()
        assert quiet(pair.there)
        assert quiet(gone.there)
        made.heal()
        assert read(pair.there, 9) == b"meanwhile"
        assert gone.there.recv(1) == b""


def test_a_forgotten_connection_stays_mute_and_new_ones_work(server) -> None:
    with network(server.getsockname()) as made, closing(Pair(made, server)) as pair:
        made.forget()
        made.heal()
        pair.here.sendall(b"lost")
        pair.here.close()
        assert quiet(pair.there)
        with closing(Pair(made, server)) as other:
            other.there.sendall(b"new")
            assert read(other.here, 3) == b"new"


def test_a_cut_resets_both_ends(server) -> None:
    with network(server.getsockname()) as made, closing(Pair(made, server)) as pair:
        made.cut()
        for end in (pair.here, pair.there):
            with pytest.raises(ConnectionResetError):
                end.recv(1)


@pytest.mark.parametrize("count", [1, 5, 40_000])
def test_a_cut_falls_behind_an_exact_byte(server, count) -> None:
    data = bytes(range(250)) * 200
    with network(server.getsockname()) as made, closing(Pair(made, server)) as pair:
        cut = made.cut_after(count, "down")
        assert not cut.is_set()
        pair.there.sendall(data)
        assert read(pair.here, len(data)) == data[:count]
        assert cut.wait(PATIENCE_S)
        pair.there.settimeout(PATIENCE_S)
        with suppress(ConnectionResetError):
            assert pair.there.recv(1) == b""


def test_a_cut_that_was_healed_before_it_came_never_comes(server) -> None:
    with network(server.getsockname()) as made, closing(Pair(made, server)) as pair:
        made.cut_after(2, "down")
        made.heal()
        pair.there.sendall(b"whole")
        assert read(pair.here, 5) == b"whole"


def test_one_direction_ends_and_the_other_goes_on(server) -> None:
    with network(server.getsockname()) as made, closing(Pair(made, server)) as pair:
        made.half_close("down")
        assert pair.here.recv(1) == b""
        pair.here.sendall(b"still")
        assert read(pair.there, 5) == b"still"


def test_a_slow_network_takes_its_time(server) -> None:
    with network(server.getsockname()) as made, closing(Pair(made, server)) as pair:
        made.slow(delay_s=0.2, down=50_000)
        begun = time.monotonic()
        pair.there.sendall(bytes(10_000))
        assert read(pair.here, 1) == b"\0"
        assert time.monotonic() - begun >= 0.2
        assert len(read(pair.here, 9_999)) == 9_999
        assert time.monotonic() - begun >= 0.35


def test_a_target_that_is_away_refuses(server) -> None:
    with network(server.getsockname()) as made:
        server.close()
        with socket.create_connection(("127.0.0.1", int(made.url.rpartition(":")[2]))) as here:
            here.settimeout(PATIENCE_S)
            with suppress(ConnectionResetError):
                assert here.recv(1) == b""


def test_a_network_leaves_no_thread_and_no_socket(server) -> None:
    before = threading.active_count()
    with network(server.getsockname()) as made, closing(Pair(made, server)) as pair:
        made.silence()
        pair.here.sendall(b"held back")
        assert made.connections == 1
    assert threading.active_count() == before
