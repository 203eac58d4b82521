"""A name service that does not answer holds nothing up."""

import asyncio
import socket
import threading

import pytest

from bothy_device.loop import Loop


async def look_up(name, port):
    return await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)


def run(talk):
    with asyncio.Runner(loop_factory=Loop) as runner:
        return runner.run(talk)


def test_a_name_is_found():
    found = run(look_up("127.0.0.1", 80))
    assert found == socket.getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM)


def test_a_name_that_is_none_is_an_error():
    with pytest.raises(socket.gaierror):
        run(look_up("no name at all", 80))


def test_the_end_waits_for_no_answer(monkeypatch):
    asked, answer = threading.Event(), threading.Event()

    def hang(*_):
        asked.set()
        answer.wait()
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)

    async def give_up():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await look_up("relay.example.com", 443)

    run(give_up())
    assert asked.is_set()
    (left,) = [each for each in threading.enumerate() if each.daemon and "look_up" in each.name]
    answer.set()  # the answer of a question that nobody asks any more
    left.join(20)
    assert not left.is_alive()
