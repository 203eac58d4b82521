"""REST on two nodes, called with what its description allows and with what it does not, by an operator, a person and nobody."""

from __future__ import annotations

import itertools
import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.schemas import APIOperation

import openapi
from bothy_kit.apart import Apart, cluster_apart
from bothy_kit.cluster import Cluster
from bothy_kit.fake_device import FakeDevice
from bothy_server.platform.operations import operations_of


def described(operation: APIOperation) -> dict[str, Any]:
    """Its part of the document."""
    return DOCUMENT["paths"][operation.path][operation.method.lower()]


EXAMPLES = int(os.environ.get("BOTHY_FUZZ_EXAMPLES", "6"))
"""For each operation, on top of the boundaries of each field; `make fuzz` takes more."""
DOCUMENT = openapi.document()
_STREAMS = [row.path for kind in openapi.adapters() for row, _ in operations_of(kind) if row.streams]
"""What goes on telling never ends, and has tests of its own."""


def with_few_long_bytes(part: Any) -> Any:
    """Texts of thousands of digits by a pattern take minutes to make."""
    match part:
        case {"contentEncoding": "base64", "maxLength": int(most)} if most > 1000:
            return {"type": "string", "enum": ["QQ==", "QUE=", "QUFB" * (most // 4 - 1)]}
        case dict():
            return {name: with_few_long_bytes(each) for name, each in part.items()}
        case list():
            return [with_few_long_bytes(each) for each in part]
        case _:
            return part


SCHEMA = schemathesis.openapi.from_dict(with_few_long_bytes(DOCUMENT)).exclude(path=_STREAMS)
SCHEMA.config.generation.update(deterministic=True, with_security_parameters=False)
# What is well formed may yet be refused for what it says; a path of a socket asks for one.
SCHEMA.config.checks.positive_data_acceptance.expected_statuses += ["422", "426"]
MANY = "100000 per minute"
PLENTY = {
    "identity": {"address_rate": MANY, "attempt_rate": MANY, "max_device_logins": 100_000},
    "terminal": {"open_rate": MANY, "open_timeout": "1 h"},
}

_NAMES = {"name", "owner", "person", "profile", "purpose", "session_user", "state"}

load_all_checks()
_OF_GENERATED = CHECKS.get_by_names(["negative_data_rejection", "positive_data_acceptance"])


@dataclass(slots=True)
class Stage:
    """What one operation is tried on: persons whom nobody else needs, and the ids of what is there."""

    apart: Apart
    operator: FakeDevice
    person: FakeDevice
    known: dict[str, str]
    turns: Iterator[int] = field(default_factory=itertools.count)

    def url(self, turn: int) -> str:
        nodes = self.apart.cluster.nodes
        return nodes[turn % len(nodes)].url

    def step_up(self, caller: FakeDevice, case: Case) -> str | None:
        """A confirmation of the purpose that the description of the body names."""
        purpose = re.search(r"purpose `(\w+)`", body_of(case.operation).get("description", ""))
        if purpose is None:
            return None
        act = {"open": ("profile", "session_user"), "attach": ("profile", "session_user")}.get(purpose[1], ())
        host = {} if purpose[1] in {"manage_relay", "manage_account"} else {"host_id": self.known["host_id"]}
        try:
            return self.apart.do(caller.step_up(purpose[1], **host, **{name: self.known[name] for name in act}))
        except KeyError:  # who may not act is not asked to confirm it
            return None


@pytest.fixture(scope="module")
def apart(shared_database_url, tmp_path_factory) -> Iterator[Apart]:
    with cluster_apart(shared_database_url, tmp_path_factory.mktemp("nodes"), nodes=2, **PLENTY) as apart:
        yield apart


@pytest.fixture(scope="module")
def stages() -> list[Stage]:
    return []


@pytest.fixture
def stage(apart: Apart, stages: list[Stage]) -> Stage:
    """The last one, unless what was tried on it took something away."""
    if not stages or not apart.do(is_whole(stages[-1])):
        stages.append(apart.do(prepared(apart)))
    return stages[-1]


async def is_whole(stage: Stage) -> bool:
    session = await stage.person.state(stage.known["session_id"])
    host = await stage.person.rest("GET", f"/hosts/{stage.known['host_id']}")
    persons = await stage.operator.rest("GET", "/persons")
    return (session.get("state"), host.body.get("presence"), persons.status) == ("opening", "online", 200)


async def prepared(apart: Apart) -> Stage:
    cluster: Cluster = apart.cluster
    name = f"Kim-{secrets.token_hex(4)}"
    operator = await cluster.operator(name)
    person, host = await cluster.couple()
    await host.connect()
    stream = await person.open(host.host_id)
    mine = (await person.rest("GET", "/audit/mine?action=device.add")).body["entries"][0]
    known = {
        "host_id": str(host.host_id),
        "session_id": str(stream.session_id),
        "device_id": str(person.device_id),
        "person_id": mine["person_id"],
        "person": name,
        "profile": "shell",
        "session_user": "alex-shell",
    }
    return Stage(apart, operator, person, known)


def body_of(operation: APIOperation) -> dict[str, Any]:
    """The schema of what an operation takes."""
    raw = described(operation).get("requestBody")
    if raw is None:
        return {}
    name = raw["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    return DOCUMENT["components"]["schemas"][name]


@SCHEMA.parametrize()
@settings(
    max_examples=EXAMPLES,
    phases=[Phase.explicit, Phase.generate],
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_every_operation_answers_as_it_is_described(case: Case, stage: Stage) -> None:
    turn = next(stage.turns)
    caller = (stage.person, stage.operator, None)[turn % 3]
    call(case, stage, caller, turn)
    if case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE:
        someone = (stage.person, stage.operator)[turn % 2]
        with_what_is_there(case, stage, someone)
        call(case, stage, someone, turn + 1, excluded_checks=_OF_GENERATED)


def call(case: Case, stage: Stage, caller: FakeDevice | None, turn: int, **options: Any) -> None:
    headers = {} if caller is None else {"Authorization": f"Bearer {caller.access_token}"}
    response = case.call(base_url=stage.url(turn), headers=headers)
    case.validate_response(response, **options)
    keeps_to_itself(case, response, caller)


def keeps_to_itself(case: Case, response: Any, caller: FakeDevice | None) -> None:
    """No answer shows the caller's token; a refusal repeats nothing of what was sent but names."""
    told = response.text + str(response.headers)
    assert caller is None or caller.access_token not in told
    if response.status_code >= 400:
        sent = [*texts(case.body), *texts(case.query), *texts(case.path_parameters)]
        assert [each for each in sent if len(each) > 5 and each in told] == []


def texts(value: Any) -> Iterator[str]:
    """Every text in it that is no name of something."""
    match value:
        case str():
            yield value
        case dict():
            for name, each in value.items():
                if name not in _NAMES:
                    yield from texts(each)
        case list():
            for each in value:
                yield from texts(each)
        case _:
            pass


def with_what_is_there(case: Case, stage: Stage, caller: FakeDevice) -> None:
    """Put in ids that exist, and a confirmation that counts."""
    known = {**stage.known, "step_up_id": stage.step_up(caller, case)}
    for part in (case.path_parameters, case.body):
        if isinstance(part, dict):
            part.update({name: known[name] for name in part if known.get(name) is not None})
