"""The scenes of the channel's vectors in which both ends are ours, and the network between them may be anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from bothy_wire.channel import RefusalCode
from channel_talk import Talk


def _new(talk: Talk) -> None:
    talk.device("write", data=b"typed ahead")
    talk.open("new", bytes(range(16)), 1000)
    talk.host("written", count=11)
    talk.host("output", data=b"hello\r\n", now=talk.tick())
    talk.host("notice", text="a line for the person, \u00e9\u4e2d")
    talk.to_device()
    talk.device("processed", count=7)
    talk.device("ping", now=talk.tick())
    talk.to_host()
    talk.to_device()
    talk.device("flush")
    talk.to_host()


def _exact(talk: Talk) -> None:
    talk.open("new", b"the first linea.", 0)
    talk.host("output", data=b"arrives and is shown, ", now=talk.tick())
    talk.to_device()
    talk.device("processed", count=10)
    talk.host("output", data=b"is lost", now=talk.tick())
    talk.host("take_outgoing")
    talk.device("write", data=b"written, lost")
    talk.to_host()
    talk.host("written", count=9)
    talk.part()
    talk.device("write", data=b", typed in the outage")
    talk.open("exact", b"the first linea.", 10)
    talk.host("output", data=b"d is shown, is lost", now=talk.tick())
    talk.to_device()
    talk.device("processed", count=19)
    talk.to_host()
    talk.host("written", count=4)
    talk.to_device()
    talk.to_host()


def _repaint(talk: Talk) -> None:
    talk.open("new", b"the first linea.", 0)
    talk.host("output", data=b"before", now=talk.tick())
    talk.to_device()
    talk.device("processed", count=2)
    talk.device("write", data=b"keys")
    talk.to_host()
    talk.part()
    talk.device("processed", count=1)
    talk.open("repaint", b"the first linea.", 5000)
    talk.device("processed", count=3)  # the terminal took what was before
    talk.host("output", data=b"after", now=talk.tick())
    talk.to_device()
    talk.device("processed", count=5)
    talk.host("written", count=4)
    talk.to_host()
    talk.to_device()


def _another_device(talk: Talk) -> None:
    talk.open("new", b"the first linea.", 0)
    talk.device("write", data=b"sent")
    talk.to_host()
    talk.part()
    talk.device("write", data=b" and not sent")
    talk.open("new", b"the other's line", 77)
    talk.device("write", data=b"typed anew")
    talk.to_host()


def _known_by_its_resume(talk: Talk) -> None:
    """The host says nothing under a lineage but that it resumes it; that is enough to know that it has it."""
    for number, resume in enumerate(("exact", "repaint")):
        lineage = bytes(15) + bytes([number])
        talk.meet()
        talk.host("accept", resume="new", lineage=lineage, output_position=0, now=talk.now)
        talk.to_device()
        talk.to_host()
        talk.part()
        talk.meet()
        talk.host("accept", resume=resume, lineage=lineage, output_position=0, now=talk.now)
        talk.to_device()
        talk.device("write", data=b"never sent")
        talk.part()
        talk.meet()
        talk.host("accept", resume="new", lineage=b"another" + lineage[7:], output_position=0, now=talk.now)
        talk.to_device()
        talk.part()


def _flood(talk: Talk) -> None:
    talk.open("new", bytes(16), 0)
    printed = bytes(byte % 251 for byte in range(6_000))
    start = 0
    while start < len(printed):
        while credit := min(talk.conversation.host.output_credit, len(printed) - start):
            talk.host("output", data=printed[start : start + credit], now=talk.tick())
            start += credit
        arrived = sum(
            len(event["data"]) // 2 for number in talk.host("take_outgoing") for event in _heard(talk, number)
        )
        talk.device("processed", count=arrived // 3)
        talk.to_host()
        talk.device("processed", count=arrived - arrived // 3)
        talk.to_host()


def _heard(talk: Talk, number: int) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = talk.device("receive", message=number, now=talk.tick())
    return [event for event in events if event["event"] == "Output"]


def _paste(talk: Talk) -> None:
    talk.open("new", bytes(16), 0)
    talk.device("write", data=bytes(range(100)))
    talk.device("resize", columns=100, rows=30)  # overtakes it
    talk.to_host()
    for count in (1, 15, 16, 3):
        talk.host("written", count=count)
        talk.to_device()
        talk.to_host()
    talk.device("drop_unsent")
    talk.device("write", data=b"\x03")
    talk.host("written", count=13)
    talk.to_device()
    talk.to_host()


def _resize(talk: Talk) -> None:
    talk.open("new", bytes(16), 0, columns=132)
    talk.device("resize", columns=1, rows=1)
    talk.device("resize", columns=1000, rows=1000)
    talk.to_host()
    talk.device("resize", columns=0, rows=65535)  # answered with a notice
    talk.to_host()
    talk.to_device()
    talk.device("resize", columns=90, rows=30)
    talk.part()
    talk.device("resize", columns=91, rows=31)
    talk.open("exact", bytes(16), 0, columns=91)


def _exit(talk: Talk) -> None:
    talk.open("new", bytes(16), 0)
    talk.host("output", data=b"the last words", now=talk.tick())
    talk.host("exit", status=130)
    talk.host("notice", text="the session ends")
    talk.to_device()
    talk.device("processed", count=14)
    talk.part()
    talk.open("exact", bytes(16), 14)
    talk.host("exit", status=130)  # the device has it already
    talk.to_device()
    talk.device("processed", count=1)
    talk.to_host()


def _refusals(talk: Talk) -> None:
    talk.device("write", data=b"kept")
    for code in get_args(RefusalCode):
        talk.meet()
        talk.host("refuse", code=code)
        talk.to_device()
        talk.device("take_outgoing")
        talk.part()
    talk.open("new", bytes(16), 0)


def _lost_record(talk: Talk) -> None:
    talk.open("new", bytes(16), 0)
    talk.host("output", data=b"good", now=talk.tick())
    talk.host("output", data=b"broken", now=talk.tick())
    talk.host("output", data=b"unseen", now=talk.tick())
    good, cut, after = talk.host("take_outgoing")
    filled = talk.frame(cut)[:20].ljust(len(talk.frame(cut)), b"\0")
    talk.device("receive", message=good, now=talk.tick())
    talk.device("receive", message=talk.conversation.frame(filled), now=talk.tick())
    talk.device("receive", message=after, now=talk.tick())
    talk.device("write", data=b"typed into the failure")
    talk.device("take_outgoing")
    talk.device("processed", count=4)
    talk.part()
    talk.device("receive", message=after, now=talk.tick())
    talk.open("exact", bytes(16), 4)


def _too_late(talk: Talk) -> None:
    talk.meet()
    talk.host("accept", resume="new", lineage=bytes(16), output_position=0, now=talk.now)
    (message2,) = talk.host("take_outgoing")
    talk.device("receive", message=message2, now=talk.now + 10.5)
    talk.device("receive", message=message2, now=talk.now + 10.5)


def _replays(talk: Talk) -> None:
    """Whoever carries the messages says old ones again: to the host, to the device, and to another pairing."""
    talk.host("paired", now=talk.tick())
    talk.device("pair", session_token="header.claims.signature", columns=80, rows=24, now=talk.now)
    (message1,) = talk.device("take_outgoing")
    talk.host("receive", message=message1, now=talk.tick())
    talk.host("accept", resume="new", lineage=bytes(16), output_position=0, now=talk.now)
    (message2,) = talk.host("take_outgoing")
    talk.device("receive", message=message2, now=talk.tick())
    (ack,) = talk.to_host()
    talk.part()

    talk.host("paired", now=talk.tick())
    talk.host("receive", message=message1, now=talk.now)
    talk.host("accept", resume="new", lineage=b"of nobody at all", output_position=0, now=talk.now)
    talk.host("take_outgoing")
    talk.host("receive", message=ack, now=talk.tick())

    talk.device("pair", session_token="header.claims.signature", columns=80, rows=24, now=talk.now)
    talk.device("take_outgoing")
    talk.device("receive", message=message2, now=talk.tick())
    talk.part()
    talk.open("exact", bytes(16), 0)


SCENES: dict[str, Callable[[Talk], None]] = {
    "new": _new,
    "exact": _exact,
    "repaint": _repaint,
    "another device typed meanwhile": _another_device,
    "a lineage that is known by its resume": _known_by_its_resume,
    "flood": _flood,
    "paste beyond the window": _paste,
    "resize": _resize,
    "exit": _exit,
    "refusals": _refusals,
    "a record that does not open": _lost_record,
    "a handshake that takes too long": _too_late,
    "replays": _replays,
}
