"""The socket API as an AsyncAPI document, made from the wire: ``python tools/asyncapi.py`` writes ``docs/api/asyncapi.yaml``.

``--check`` fails when it is stale. Fields, bounds, records, signed fields and close codes come from ``bothy_wire``, the meaning
of a field from the table Fields of ``docs/spec/protocol.md``. Here stands only what no type can say: who speaks when.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from api_page import Document, attribute_docs, field_meanings, page, prose, schemas, write_or_check
from bothy_wire import close_codes, frames, limits, signing
from bothy_wire.channel import handshake, records
from bothy_wire.close_codes import MEANINGS, Client, CloseCode, Meaning, Retry
from bothy_wire.signing import Purpose

PAGE = Path("docs/api/asyncapi.yaml")

_SIGNED = {
    frames.HostIdentify: Purpose.HOST_IDENTIFY,
    frames.DataIdentify: Purpose.DATA_IDENTIFY,
    frames.StreamIdentify: Purpose.STREAM_IDENTIFY,
}


@dataclass(frozen=True, slots=True)
class Operation:
    """Messages that one end may send, and when. ``action`` is the server's."""

    name: str
    action: Literal["send", "receive"]
    messages: tuple[Any, ...]
    when: str


@dataclass(frozen=True, slots=True)
class Socket:
    """One of the three sockets."""

    client: Client
    address: str
    subprotocol: str
    who: str
    operations: tuple[Operation, ...]


_TO_HOST = ("channel.message1", "channel.record_to_host")
_TO_DEVICE = ("channel.message2", "channel.record_to_device")
_IDENTIFIES = "Second, once, within `wire.identify_timeout` and at most `wire.max_unidentified_frame_bytes` long."


def _side(
    name: str, hello: type, identify: type, to_it: tuple[str, ...], from_it: tuple[str, ...]
) -> tuple[Operation, ...]:
    """What a stream and a data connection have in common: all but the direction of the channel's messages."""
    return (
        Operation(f"greet{name}", "send", (hello,), "First, once."),
        Operation(f"identify{name}", "receive", (identify,), _IDENTIFIES),
        Operation(
            f"steer{name}",
            "send",
            (frames.SideAccepted, frames.SidePaired, frames.SideUnpaired),
            "`side.accepted` once, then `side.paired` and `side.unpaired` in turn.",
        ),
        Operation(f"ready{name}", "receive", (frames.SideReady,), "Exactly once after each `side.unpaired`."),
        Operation(f"forwardTo{name}", "send", to_it, "While paired: what the other side sent, byte for byte."),
        Operation(
            f"forwardFrom{name}",
            "receive",
            from_it,
            "While paired: for the other side, at most `wire.max_frame_bytes` a message. Read and dropped between"
            " `side.unpaired` and `side.ready`; 4105 at any other time.",
        ),
    )


_OPENING = {frames.HostHello, frames.HostIdentified, frames.HostPending}

SOCKETS = (
    Socket(
        "control",
        limits.CONTROL_PATH,
        limits.CONTROL_SUBPROTOCOL,
        "A host service, to any node; one connection at a time.",
        (
            Operation("greetControl", "send", (frames.HostHello,), "First, once."),
            Operation("identifyControl", "receive", (frames.HostIdentify,), _IDENTIFIES),
            Operation(
                "admitControl",
                "send",
                (frames.HostIdentified, frames.HostPending),
                "Answers the identify. `host.pending` is followed by `host.identified` when an owner confirms the host.",
            ),
            Operation(
                "orderControl",
                "send",
                tuple(each for each in get_args(frames.ServerControl) if each not in _OPENING),
                "`host.heartbeat_ack` answers each heartbeat; `host.keys` comes at any time; the others follow the report.",
            ),
            Operation(
                "tellControl",
                "receive",
                get_args(frames.HostControl),
                "`host.heartbeat` at any time; `host.report` answers `host.identified`; the others follow the report.",
            ),
        ),
    ),
    Socket(
        "data",
        limits.data_path("{session_id}"),
        limits.DATA_SUBPROTOCOL,
        "A host service, to the session's node; asked for by `host.session.open`.",
        _side("Data", frames.DataHello, frames.DataIdentify, _TO_HOST, _TO_DEVICE),
    ),
    Socket(
        "stream",
        limits.stream_path("{session_id}"),
        limits.STREAM_SUBPROTOCOL,
        "A device, to the session's node; with the stream token of an open or attach.",
        _side("Stream", frames.StreamHello, frames.StreamIdentify, _TO_DEVICE, _TO_HOST),
    ),
)


def document() -> Document:
    """The whole document."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "bothy sockets",
            "version": str(limits.PROTOCOL_VERSION),
            "description": _INFO,
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {
            "relay": {
                "host": "relay.example.com",
                "protocol": "wss",
                "description": "The relay's public address: the edge, or a single node.",
            }
        },
        "channels": {socket.client: _channel(socket) for socket in SOCKETS},
        "operations": {
            operation.name: _operation(socket, operation) for socket in SOCKETS for operation in socket.operations
        },
        "components": {"messages": dict(_messages()), "schemas": _schemas()},
        "x-close-codes": [_close_code(*each) for each in MEANINGS.items()],
        "x-retry": _retries(),
        "x-close-code-unknown": {
            "1000 to 1999": {client: close_codes.retry_of(1999, client) for client in get_args(Client)},
            "4000 and above": {client: close_codes.retry_of(4999, client) for client in get_args(Client)},
        },
    }


_INFO = """\
The three WebSockets of bothy, as the server sees them: `send` is what the server sends. REST, which hands out the tokens, is \
not part of this document; what the frames bring about is told in docs/spec/protocol.md.

Text messages are JSON frames, strict: an unknown type, an unknown or missing field or a value outside its bounds closes the \
socket with 4105. Binary messages belong to the encrypted channel between device and host, which the server cannot read. No \
extension is negotiated. A refusal is a close code, sent after the handshake was accepted; x-close-codes says what the client \
of each socket does then, in the words of x-retry."""


def _channel(socket: Socket) -> Document:
    named = [_name(each) for operation in socket.operations for each in operation.messages]
    channel: Document = {
        "address": socket.address,
        "description": socket.who,
        "servers": [{"$ref": "#/servers/relay"}],
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in dict.fromkeys(named)},
        "bindings": {"ws": {"method": "GET", "headers": _headers(socket), "bindingVersion": "0.1.0"}},
    }
    if "{session_id}" in socket.address:
        text = "Id of the session in canonical lower-case form; any other spelling is refused."
        channel["parameters"] = {"session_id": {"description": text}}
    return channel


def _headers(socket: Socket) -> Document:
    properties: Document = {"Sec-WebSocket-Protocol": {"type": "string", "const": socket.subprotocol}}
    if socket.client != "control":
        words = "Of a browser: one of `server.public_origins`, else the socket is closed 4101. Programs send none."
        properties["Origin"] = {"type": "string", "description": words}
    return {"type": "object", "required": ["Sec-WebSocket-Protocol"], "properties": properties}


def _operation(socket: Socket, operation: Operation) -> Document:
    return {
        "action": operation.action,
        "channel": {"$ref": f"#/channels/{socket.client}"},
        "description": operation.when,
        "messages": [{"$ref": f"#/channels/{socket.client}/messages/{_name(each)}"} for each in operation.messages],
    }


def _name(message: Any) -> str:
    """The name of a message: of a frame its type."""
    return message if isinstance(message, str) else str(message.__struct_config__.tag)


# ---- messages -----------------------------------------------------------------------------------------------------


def _messages() -> Iterable[tuple[str, Document]]:
    for frame in frames.Frame.__subclasses__():
        message: Document = {
            "name": _name(frame),
            "title": frame.__name__,
            "description": _prose(frame.__doc__),
            "contentType": "application/json",
            "payload": {"$ref": f"#/components/schemas/{frame.__name__}"},
            "x-websocket-opcode": "text",
        }
        if frame in _SIGNED:
            message["x-signed"] = _signed(_SIGNED[frame])
        yield _name(frame), message
    yield _binary("channel.message1", handshake.Message1.__doc__, {"x-plaintext": [_schema_of(handshake.Message1)]})
    answers = [_schema_of(each) for each in get_args(handshake.Message2)]
    yield _binary(
        "channel.message2", "The host's answer, in the second message of the handshake.", {"x-plaintext": answers}
    )
    for name, direction in ((_TO_HOST[1], "to host"), (_TO_DEVICE[1], "to device")):
        yield _binary(name, f"One encrypted record {direction}.", {"x-records": list(_records(direction))})


def _binary(name: str, text: str | None, extra: Document) -> tuple[str, Document]:
    payload = {"type": "string", "format": "binary", "minLength": 1, "maxLength": limits.CHANNEL_MESSAGE_BYTES}
    return name, {
        "name": name,
        "description": _prose(text),
        "contentType": "application/octet-stream",
        "payload": payload,
        "x-websocket-opcode": "binary",
        **extra,
    }


def _signed(purpose: Purpose) -> Document:
    told = attribute_docs(inspect.getsource(signing))[f"Purpose.{purpose.name}"]
    return {"label": f"bothy-{purpose}-v1", "fields": ["audience", *told.split(", ")]}


def _records(direction: str) -> Iterable[Document]:
    """The rows of the table in the module's docstring that go this way."""
    for name, number, way, body in re.findall(
        r"^(\w+) +(0x\w\w) +(both|to host|to device) +(.+)$", records.__doc__ or "", re.MULTILINE
    ):
        if way in {"both", direction}:
            meaning = getattr(records, name.capitalize()).__doc__
            yield {"type": int(number, 16), "name": name, "body": _prose(body), "description": _prose(meaning)}


# ---- schemas ------------------------------------------------------------------------------------------------------


def _schemas() -> Document:
    roots = [*frames.Frame.__subclasses__(), handshake.Message1, *get_args(handshake.Message2)]
    told = attribute_docs(inspect.getsource(frames)) | attribute_docs(inspect.getsource(handshake))
    return schemas(roots, field_meanings("Fields") | told, _prose)


def _schema_of(kind: type) -> Document:
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


# ---- words --------------------------------------------------------------------------------------------------------


def _close_code(code: CloseCode, meaning: Meaning) -> Document:
    retry = {client: meaning.retry(client) for client in get_args(Client)}
    return {"code": int(code), "name": meaning.name, "text": meaning.text, "retry": retry}


def _retries() -> dict[str, str]:
    """The list in the docstring of the close codes."""
    told = dict(re.findall(r"^- ``(\w+)``: (.+)$", close_codes.__doc__ or "", re.MULTILINE))
    return {word: _prose(told[word]) for word in get_args(Retry)}


def _prose(doc: str | None) -> str:
    """A docstring as Markdown; a constant becomes its value, a frame what it is called on the wire."""
    text = re.sub(r":data:`~?[\w.]*?(\w+)`", lambda found: str(getattr(records, found[1])), doc or "")
    return prose(re.sub(r":class:`~?[\w.]*?(\w+)`", lambda found: f"`{_tag_of(found[1])}`", text))


def _tag_of(name: str) -> str:
    """What a class is called on the wire."""
    return next((_name(each) for each in frames.Frame.__subclasses__() if each.__name__ == name), name)


# ---- the file -----------------------------------------------------------------------------------------------------


def text() -> str:
    """What the file holds."""
    return page("Made from the wire by tools/asyncapi.py; `make api` writes it.", document())


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, text))
