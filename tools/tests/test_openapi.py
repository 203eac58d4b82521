"""The document is fresh, complete and valid, and says of a body what the decoder says."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import jsonschema_rs
import pytest
import schemathesis
import yaml

import openapi
from bothy_server.identity.adapters.http.sign_in import Redeem, TokenWanted
from bothy_server.identity.adapters.http.step_ups import StepUpWanted
from bothy_server.platform.operations import Operation, operations_of
from bothy_wire.strict_json import StrictDecoder

ROOT = Path(__file__).parents[2]
DOCUMENT = yaml.safe_load((ROOT / openapi.PAGE).read_text())
ROWS: list[Operation] = [row for kind in openapi.adapters() for row, _ in operations_of(kind)]
ID = "0199aaaa-0000-7000-8000-00000000000a"
KEY, SIGNATURE = "A" * 43 + "=", "A" * 86 + "=="

each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


def resolved(part: dict) -> dict:
    """What a reference points to, or the part itself."""
    found = DOCUMENT
    for name in part.get("$ref", "#").removeprefix("#").split("/")[1:]:
        found = found[name]
    return found if "$ref" in part else part


def operation(row: Operation) -> dict:
    return DOCUMENT["paths"][row.path][row.method.lower()]


def schema(part: dict) -> dict:
    """With everything that it may refer to."""
    return {**part, "components": DOCUMENT["components"]}


def test_openapi_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert (ROOT / openapi.PAGE).read_text() == openapi.text(), "run make api"


@pytest.mark.parametrize(("change", "status"), [("", 0), ("\n", 1)])
def test_openapi_check_finds_a_stale_document(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change: str, status: int
) -> None:
    monkeypatch.chdir(ROOT)
    page = tmp_path / "openapi.yaml"
    page.write_text(openapi.text() + change)
    monkeypatch.setattr("sys.argv", ["openapi.py", "--check"])
    assert openapi.write_or_check(page, openapi.text) == status


def test_openapi_is_valid() -> None:
    schemathesis.openapi.from_dict(copy.deepcopy(DOCUMENT)).validate()


def test_the_validator_of_this_file_finds_faults() -> None:
    broken = copy.deepcopy(DOCUMENT)
    del broken["paths"]["/api/v1/hosts"]["get"]["responses"]["200"]["description"]
    with pytest.raises(jsonschema_rs.ValidationError):
        schemathesis.openapi.from_dict(broken).validate()


def test_every_schema_of_openapi_can_be_compiled() -> None:
    """Its references lead somewhere, and its patterns are of the dialect that the standard names."""
    for name in DOCUMENT["components"]["schemas"]:
        jsonschema_rs.Draft202012Validator(schema({"$ref": f"#/components/schemas/{name}"}))


def test_openapi_has_every_operation_once() -> None:
    told = [each["operationId"] for path in DOCUMENT["paths"].values() for each in path.values()]
    assert len(told) == len(set(told))
    assert set(told) == {row.name for row in ROWS} | {"name_node_of_stream", "name_node_of_data"}
    assert len(ROWS) > 15


@each_row
def test_openapi_has_success_and_every_refusal(row: Operation) -> None:
    answers = {status: resolved(answer) for status, answer in operation(row)["responses"].items()}
    assert set(answers) == {str(row.status), *map(str, row.all_refusals())}
    for status, codes in row.all_refusals().items():
        problem = answers[str(status)]["content"]["application/problem+json"]["schema"]
        assert problem["properties"] == {"status": {"const": status}, "code": {"enum": list(codes)}}
    content = answers[str(row.status)].get("content")
    if row.streams:
        assert set(content) == {"text/event-stream"}
        return
    name = None if content is None else content["application/json"]["schema"]["$ref"].rpartition("/")[2]
    assert name == (row.answers and row.answers.__name__)


@each_row
def test_openapi_says_what_an_operation_takes(row: Operation) -> None:
    told = operation(row)
    assert told["summary"]
    assert (told.get("security") == []) is not row.signed_in
    body = told.get("requestBody")
    assert (body and body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]) == (
        row.takes and row.takes.__name__
    )
    parameters = [resolved(each) for each in told.get("parameters", ())]
    assert ("Idempotency-Key" in {each["name"] for each in parameters}) is row.repeatable
    query = {each["name"] for each in parameters if each["in"] == "query"}
    assert query == (set(row.query.__struct_encode_fields__) if row.query else set())
    assert all(each["description"] for each in parameters)


def test_openapi_describes_every_field() -> None:
    """A name that is new has its row in docs/spec/protocol.md, Fields of REST, or words below it in the code."""
    schemas = DOCUMENT["components"]["schemas"]
    fields = {(name, field): each for name, schema in schemas.items() for field, each in schema["properties"].items()}
    assert [where for where, each in fields.items() if not each.get("description") and where[0] != "Problem"] == []
    assert all(schema["description"] for schema in schemas.values())


def test_openapi_tells_when_to_try_again() -> None:
    for name, status in {"unavailable": "503", "rate_limited": "429"}.items():
        assert "Retry-After" in DOCUMENT["components"]["responses"][name]["headers"], status
    running = resolved(DOCUMENT["paths"]["/api/v1/hosts"]["post"]["responses"]["409"])
    assert "Retry-After" in running["headers"]


GOOD = {
    Redeem: {"code": "x", "name": "laptop", "signing_key": KEY, "channel_key": KEY, "signature": SIGNATURE},
    TokenWanted: {"device_id": ID, "challenge": KEY, "signature": SIGNATURE},
    StepUpWanted: {"purpose": "open", "host_id": ID, "profile": "shell", "session_user": None},
}


@pytest.mark.parametrize("kind", GOOD, ids=lambda kind: kind.__name__)
def test_openapi_is_as_strict_as_the_decoder(kind: type) -> None:
    validator = jsonschema_rs.Draft202012Validator(schema({"$ref": f"#/components/schemas/{kind.__name__}"}))
    decoder = StrictDecoder(kind)
    spoilt = ["", 0, None, True, [], "x" * 200, "a\tb", "a\u0085b", "lap\ntop", "laptop\n", "x" * 64, "x" * 65]
    spoilt += [
        ID.upper(),
        ID.replace("-", ""),
        f"urn:uuid:{ID}",
        KEY[:-2] + "B=",
        KEY[:-1],
        f"{KEY}\n",
        "open",
        "login",
    ]
    spoilt += [SIGNATURE[:-3] + "B==", SIGNATURE[:-3] + "w==", KEY[:-2] + "8="]
    good = GOOD[kind]
    bodies = [good, good | {"more": 1}, *({n: v for n, v in good.items() if n != left} for left in good)]
    bodies += [good | {name: value} for name in good for value in spoilt]
    verdicts = set()
    for body in bodies:
        try:
            decoder.decode(json.dumps(body).encode())
            taken = True
        except ValueError:
            taken = False
        assert validator.is_valid(body) is taken, body
        verdicts.add(taken)
    assert verdicts == {True, False}
