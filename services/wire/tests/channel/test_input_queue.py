"""What was typed stays until it is written."""

from __future__ import annotations

import pytest

from bothy_wire.channel.input_queue import InputQueue
from bothy_wire.errors import ChannelError


def queue_with(data: bytes, window: int = 10) -> InputQueue:
    queue = InputQueue(window)
    queue.write(data)
    return queue


def test_bytes_are_taken_in_order_and_within_the_window():
    queue = queue_with(bytes(range(25)))
    assert queue.take(4) == bytes(range(4))
    assert queue.take(100) == bytes(range(4, 10))
    assert queue.take(100) == b""
    assert (queue.pending, queue.unsent, queue.sent) == (25, 15, 10)
    queue.acknowledge(7)
    assert (queue.pending, queue.unsent) == (18, 15)
    assert queue.take(100) == bytes(range(10, 17))


def test_an_acknowledgement_of_what_was_not_sent_is_refused():
    queue = queue_with(b"abc")
    queue.take(2)
    with pytest.raises(ChannelError):
        queue.acknowledge(3)
    assert queue.pending == 3


def test_only_what_was_not_sent_can_be_dropped():
    queue = queue_with(b"abcdef")
    queue.take(2)
    queue.acknowledge(1)
    assert queue.drop_unsent() == 4
    assert queue.drop_unsent() == 0
    assert (queue.pending, queue.unsent) == (1, 0)
    queue.write(b"xy")
    assert queue.take(10) == b"xy"


def test_a_resume_sends_again_what_the_host_lacks():
    queue = queue_with(b"abcdef")
    queue.take(5)
    queue.acknowledge(1)
    queue.resume(3)
    assert queue.take(10) == b"def"


@pytest.mark.parametrize("received", [0, 6])
def test_a_resume_outside_of_what_was_sent_is_refused(received):
    queue = queue_with(b"abcdef")
    queue.take(5)
    queue.acknowledge(1)
    with pytest.raises(ChannelError):
        queue.resume(received)


def test_a_new_lineage_keeps_or_drops_all():
    queue = queue_with(b"abc")
    queue.take(2)
    assert queue.restart(keep=False) == 3
    queue.write(b"typed ahead")
    assert queue.restart(keep=True) == 0
    assert queue.take(100) == b"typed ahead"[:10]
