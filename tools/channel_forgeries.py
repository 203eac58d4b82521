"""The scenes of the channel's vectors in which a host says what no host may say."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from bothy_wire.channel import Accepted, records
from bothy_wire.channel.handshake import encode_payload, prologue
from bothy_wire.channel.noise import CipherState, Responder
from bothy_wire.channel.records import Sealer
from channel_recording import fixed_key
from channel_talk import Talk


class _Peer:
    """A host that says anything. Only the device's steps are written down."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        facts = talk.conversation.facts
        talk.device("pair", session_token="token", columns=80, rows=24, now=talk.tick())
        (message1,) = talk.device("take_outgoing")
        self.responder = Responder(
            talk.conversation.host_key,
            prologue(facts["session_id"], facts["host_id"]),
            ephemeral=fixed_key(f"{facts['name']} peer {message1}"),
        )
        self.responder.read(talk.frame(message1))

    def accept(self, answer: Accepted) -> CipherState:
        """The cipher of what the host says from now on."""
        self.say(self.responder.write(encode_payload(answer)))
        send, _ = self.responder.split()
        return send

    def say(self, message: bytes) -> None:
        self.talk.device("receive", message=self.talk.conversation.frame(message), now=self.talk.tick())


def _accepted(
    resume: Any = "new", lineage: bytes = b"the first linea.", position: int = 0, received: int = 0
) -> Accepted:
    return Accepted(resume=resume, lineage=lineage, output_position=position, input_received=received)


def _said(said: list[records.Record], talk: Talk) -> None:
    """Records that a host may not send here; the last one fails the channel."""
    peer = _Peer(talk)
    sealer = Sealer(peer.accept(_accepted()))
    for record in said:
        peer.say(sealer.seal(record))
    talk.device("take_outgoing")


def _unknown(talk: Talk) -> None:
    """One record of the future that may be skipped, then plaintexts that are none."""
    for raw in (
        b"",
        b"\x09",
        b"\x01",
        b"\x02\0",
        b"\x04",
        b"\x05\x02",
        b"\x07\0",
        b"\x08",
        b"\x08\xff",
        b"\x08" + b"x" * 1025,
    ):
        peer = _Peer(talk)
        cipher = peer.accept(_accepted())
        peer.say(cipher.encrypt(b"\x90from the future"))
        peer.say(cipher.encrypt(b"\x01shown"))
        talk.device("processed", count=5)
        peer.say(cipher.encrypt(raw))
        talk.device("unpaired")


def _payloads(talk: Talk) -> None:
    """Answers in the handshake that are no message 2."""
    good = encode_payload(_accepted()).decode()
    for raw in (
        "",
        "[]",
        "null",
        '{"type":"accepted"}',
        good.replace("new", "old"),
        good.replace('"output_position":0', '"output_position":-1'),
        good.replace('"output_position":0', '"output_position":"0"'),
        good.replace('"output_position":0', '"output_position":0.5'),
        good.replace('"output_position":0', '"output_position":null'),
        good.replace("}", ',"more":1}'),
        good.replace("}", ',"resume":"new"}'),
        good.replace("=", ""),
        good.replace("4u", "4v"),
        good[:-1],
        good + " x",
        '{"type":"refused","code":"because"}',
        '{"type":"refused","code":["token_expired"]}',
    ):
        peer = _Peer(talk)
        peer.say(peer.responder.write(raw.encode()))
        talk.device("unpaired")
    peer = _Peer(talk)
    peer.accept(_accepted())
    talk.device("take_outgoing")


def _unlike(answer: Accepted, talk: Talk) -> None:
    """A first channel, then a host that resumes what the device did not present."""
    talk.open("new", b"the first linea.", 1000)
    talk.device("write", data=b"typed")
    talk.part()
    peer = _Peer(talk)
    peer.say(peer.responder.write(encode_payload(answer)))


_ROOM = [records.Repaint(b"", last=False)]
_ENDED = [records.Exit(0)]
_NOT_ALLOWED: dict[str, list[records.Record]] = {
    "a size": [records.Resize(80, 24)],
    "a ping": [records.Ping()],
    "an answer to no ping": [records.Pong()],
    "an acknowledgement of what was not sent": [records.Ack(1)],
    "output behind the exit": [*_ENDED, records.Data(b"x")],
    "two exits": [*_ENDED, records.Exit(0)],
    "a repaint behind the exit": [*_ENDED, records.Repaint(b"", last=True)],
    "output within a repaint": [*_ROOM, records.Data(b"x")],
    "an exit within a repaint": [*_ROOM, records.Exit(0)],
}
_NOT_PRESENTED = {
    "input of a new lineage": _accepted(lineage=b"another lineage!", received=1),
    "repaint of another lineage": _accepted("repaint", b"another lineage!"),
    "exact of another lineage": _accepted("exact", b"another lineage!", 1000),
    "exact elsewhere": _accepted("exact", position=999),
    "exact with input that was not sent": _accepted("exact", position=1000, received=1),
    "repaint with input that was not sent": _accepted("repaint", received=1),
}
SCENES: dict[str, Callable[[Talk], None]] = {
    "records that are unknown or malformed": _unknown,
    "payloads that are no message 2": _payloads,
    **{f"not allowed: {name}": partial(_said, said) for name, said in _NOT_ALLOWED.items()},
    **{f"not presented: {name}": partial(_unlike, answer) for name, answer in _NOT_PRESENTED.items()},
}
