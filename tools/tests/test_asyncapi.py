"""The document is fresh, complete, well formed, and says of a frame what the codec says."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
import yaml

import asyncapi
from bothy_wire import close_codes, frames
from bothy_wire.channel import handshake, records
from bothy_wire.frames import Frame, encode

ROOT = Path(__file__).parents[2]
DOCUMENT = yaml.safe_load((ROOT / asyncapi.PAGE).read_text())
SCHEMAS, MESSAGES = DOCUMENT["components"]["schemas"], DOCUMENT["components"]["messages"]
# The wire's own test keeps an example of every frame.
EXAMPLES = runpy.run_path(str(ROOT / "services/wire/tests/test_frames.py"))["EXAMPLES"]


def target(reference: str):
    """What a reference points to."""
    found = DOCUMENT
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return found


def faults(value, schema: dict) -> Iterator[str]:
    """Why a JSON value is not what a schema asks for; the keywords that the document uses, and no others."""
    types = {"object": dict, "array": list, "string": str, "integer": int, "number": int | float, "boolean": bool}
    for keyword, wanted in schema.items():
        match keyword:
            case "type" if wanted == "null":
                good = value is None
            case "type":
                good = isinstance(value, types[wanted]) and (wanted == "boolean" or not isinstance(value, bool))
            case "enum":
                good = value in wanted
            case "pattern":
                good = re.search(wanted, value) is not None
            case "minLength" | "minItems":
                good = len(value) >= wanted
            case "maxLength" | "maxItems" | "maxProperties":
                good = len(value) <= wanted
            case "minimum":
                good = value >= wanted
            case "maximum":
                good = value <= wanted
            case "required":
                good = set(wanted) <= set(value)
            case "additionalProperties" if wanted is False:
                good = set(value) <= set(schema["properties"])
            case "additionalProperties":
                good = not any(list(faults(each, wanted)) for each in value.values())
            case "propertyNames":
                good = not any(list(faults(each, wanted)) for each in value)
            case "properties":
                good = not any(list(faults(value[name], each)) for name, each in wanted.items() if name in value)
            case "items":
                good = not any(list(faults(each, wanted)) for each in value)
            case "$ref":
                good = not list(faults(value, target(wanted)))
            case "allOf":
                good = not any(list(faults(value, each)) for each in wanted)
            case "anyOf":
                good = any(not list(faults(value, each)) for each in wanted)
            case "title" | "description" | "format" | "contentEncoding" | "default":
                continue
            case _:
                raise AssertionError(f"the check does not know the keyword {keyword}")
        if not good:
            yield keyword
            return


def schema_of(frame: Frame) -> dict:
    return SCHEMAS[type(frame).__name__]


each_example = pytest.mark.parametrize("frame", EXAMPLES, ids=lambda frame: type(frame).__name__)


def test_asyncapi_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert (ROOT / asyncapi.PAGE).read_text() == asyncapi.text()


@pytest.mark.parametrize(("change", "status"), [("", 0), ("\n", 1)])
def test_asyncapi_check_finds_a_stale_document(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change: str, status: int
) -> None:
    monkeypatch.chdir(ROOT)
    page = tmp_path / "asyncapi.yaml"
    page.write_text(asyncapi.text() + change)
    monkeypatch.setattr("sys.argv", ["asyncapi.py", "--check"])
    assert asyncapi.write_or_check(page, asyncapi.text) == status


@each_example
def test_asyncapi_admits_what_the_encoder_makes(frame: Frame) -> None:
    assert list(faults(json.loads(encode(frame)), schema_of(frame))) == []


@each_example
def test_asyncapi_refuses_what_the_codec_refuses(frame: Frame) -> None:
    good = json.loads(encode(frame))
    bad = [good | {"type": "other"}, good | {"extra": 1}, *({k: v for k, v in good.items() if k != n} for n in good)]
    bad += [good | {name: value.upper()} for name, value in good.items() if name.endswith("_id")]
    for each in bad:
        optional = {"session_token", "exit_status"} & (set(good) - set(each))
        assert bool(list(faults(each, schema_of(frame)))) is not bool(optional), each


def test_asyncapi_has_every_bound() -> None:
    properties = SCHEMAS["HostIdentify"]["properties"]
    for name, value in {"version": 0, "join": "", "signature": "QQ==", "host_id": "x", "boot_id": 1}.items():
        assert list(faults(value, properties[name])), name
    assert list(faults(256, SCHEMAS["HostSessionEnded"]["properties"]["exit_status"]))
    assert list(faults({"": ["alex"]}, SCHEMAS["HostReport"]["properties"]["profiles"]))
    assert set(SCHEMAS["HostSessionClose"]["properties"]["reason"]["enum"]) == set(get_args(frames.CloseReason))


def test_asyncapi_describes_every_field() -> None:
    fields = [field for schema in SCHEMAS.values() for field in schema["properties"].values()]
    assert all(each["description"] for each in [*fields, *SCHEMAS.values(), *MESSAGES.values()])
    assert "profile name to the session users" in SCHEMAS["HostReport"]["properties"]["profiles"]["description"].lower()


def test_asyncapi_has_every_frame_with_its_direction() -> None:
    told = {"send": set(), "receive": set()}
    for operation in DOCUMENT["operations"].values():
        told[operation["action"]] |= {target(each["$ref"])["$ref"].rpartition("/")[2] for each in operation["messages"]}
    binary = {name for name, message in MESSAGES.items() if message["x-websocket-opcode"] == "binary"}
    tags = {each: each.__struct_config__.tag for each in Frame.__subclasses__()}
    identify = {frames.HostIdentify, frames.DataIdentify, frames.StreamIdentify}
    received = identify | {frames.SideReady, *get_args(frames.HostControl)}
    assert set(MESSAGES) - binary == set(tags.values())
    assert told["receive"] - binary == {tags[each] for each in received}
    assert told["send"] - binary == {tags[each] for each in set(tags) - received}
    assert len(binary) == 4
    assert told["send"] & told["receive"] == binary


def test_asyncapi_is_well_formed() -> None:
    assert DOCUMENT["asyncapi"] == "3.0.0"
    assert {"title", "version"} <= set(DOCUMENT["info"])
    for channel in DOCUMENT["channels"].values():
        assert set(re.findall(r"{(\w+)}", channel["address"])) == set(channel.get("parameters", {}))
    for operation in DOCUMENT["operations"].values():
        assert operation["action"] in {"send", "receive"}
        own = operation["channel"]["$ref"] + "/messages/"
        assert all(each["$ref"].startswith(own) for each in operation["messages"])
    references = re.findall(r"\$ref: '(#[^']+)'", (ROOT / asyncapi.PAGE).read_text())
    assert references
    for each in references:
        target(each)


def test_asyncapi_says_what_each_client_does_about_each_code() -> None:
    told = {each["code"]: each for each in DOCUMENT["x-close-codes"]}
    assert set(told) == set(close_codes.MEANINGS)
    for code, each in told.items():
        assert each["retry"] == {client: close_codes.retry_of(code, client) for client in ("stream", "data", "control")}
        assert each["text"] == close_codes.text_of(code)
    for words, code in {"1000 to 1999": 1998, "4000 and above": 4998}.items():
        retry = {client: close_codes.retry_of(code, client) for client in ("stream", "data", "control")}
        assert DOCUMENT["x-close-code-unknown"][words] == retry
    assert set(DOCUMENT["x-retry"]) == set(get_args(close_codes.Retry))
    assert all(DOCUMENT["x-retry"].values())


def test_asyncapi_says_what_the_handshake_carries() -> None:
    headers = {name: channel["bindings"]["ws"]["headers"] for name, channel in DOCUMENT["channels"].items()}
    for name, each in headers.items():
        assert each["required"] == ["Sec-WebSocket-Protocol"]
        assert each["properties"]["Sec-WebSocket-Protocol"]["const"] == f"bothy.{name}.v1"
    assert {name for name, each in headers.items() if "Origin" in each["properties"]} == {"data", "stream"}


def test_asyncapi_says_what_is_signed() -> None:
    signed = {name: message["x-signed"]["label"] for name, message in MESSAGES.items() if "x-signed" in message}
    assert signed == {
        "host.identify": "bothy-host-identify-v1",
        "data.identify": "bothy-data-identify-v1",
        "stream.identify": "bothy-stream-identify-v1",
    }
    fields = MESSAGES["data.identify"]["x-signed"]["fields"]
    assert fields == ["audience", "challenge", "host_id", "session_id", "pairing_seq"]


def test_asyncapi_lists_the_records_of_each_direction() -> None:
    samples = {
        "DATA": records.Data(b"x"),
        "ACK": records.Ack(0),
        "RESIZE": records.Resize(1, 1),
        "EXIT": records.Exit(0),
        "REPAINT": records.Repaint(b"", last=True),
        "PING": records.Ping(),
        "PONG": records.Pong(),
        "NOTICE": records.Notice("x"),
    }
    assert {type(each) for each in samples.values()} == set(get_args(records.Record))
    numbers = {name: records.encode_record(each)[0] for name, each in samples.items()}

    def told(direction: str) -> dict[str, int]:
        return {each["name"]: each["type"] for each in MESSAGES[f"channel.record_to_{direction}"]["x-records"]}

    assert told("host") | told("device") == numbers
    assert set(told("host")) & set(told("device")) == {"DATA", "ACK"}
    plain = [each["$ref"].rpartition("/")[2] for each in MESSAGES["channel.message2"]["x-plaintext"]]
    assert plain == [each.__name__ for each in get_args(handshake.Message2)]


def test_the_check_of_this_file_finds_faults() -> None:
    """A check that admits everything would keep nothing true."""
    good = json.loads(encode(frames.HostSessionEnded(session_id=EXAMPLES[1].host_id, reason="idle", exit_status=1)))
    schema = SCHEMAS["HostSessionEnded"]
    assert list(faults(good, schema)) == []
    for name, value in {"exit_status": True, "session_id": good["session_id"].upper(), "reason": "bored"}.items():
        assert list(faults(good | {name: value}, schema))
