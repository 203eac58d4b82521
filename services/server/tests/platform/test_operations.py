"""The table of operations: what a method says of itself, and what every operation of its kind may answer besides."""

from uuid import UUID

import msgspec
import pytest

from bothy_server.kernel.problems import Problem
from bothy_server.platform.operations import AnonymousCall, Call, Operation, operation, operations_of

THING = "0199aaaa-0000-7000-8000-00000000000a"


class Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    all: bool = False


class Thing(msgspec.Struct, frozen=True):
    name: str


class Things:
    @operation("POST", "/things", 201, refuses={409: ("thing_exists",), 401: ("step_up_required",)}, repeatable=True)
    async def make_thing(self, call: Call[Wanted]) -> Thing:
        """Make a thing.

        It stays.
        """
        return Thing(call.body.name)

    async def helps(self) -> None:
        """No operation."""

    @operation("GET", "/things", query=Asked)
    async def list_things(self, call: Call[None]) -> Thing:
        """All things."""
        return Thing(str(call.asked(Asked).all))

    @operation("POST", "/guesses")
    async def guess_thing(self, call: AnonymousCall[Wanted]) -> None:
        """Guess one."""

    @operation("GET", "/rules", max_age_s=60)
    async def read_rules(self, call: AnonymousCall[None]) -> Thing:
        """What everybody may know."""
        return Thing("")


def row(name: str) -> Operation:
    return next(row for row, _ in operations_of(Things) if row.name == name)


def test_a_row_is_what_the_method_says():
    assert row("make_thing") == Operation(
        method="POST",
        path="/things",
        status=201,
        name="make_thing",
        words="Make a thing.\n\nIt stays.",
        takes=Wanted,
        query=None,
        answers=Thing,
        refuses={409: ("thing_exists",), 401: ("step_up_required",)},
        signed_in=True,
        repeatable=True,
        max_age_s=0,
    )
    assert (row("list_things").takes, row("list_things").query, row("list_things").signed_in) == (None, Asked, True)
    assert (row("guess_thing").answers, row("guess_thing").signed_in, row("guess_thing").status) == (None, False, 200)
    assert row("read_rules").max_age_s == 60


def test_the_rows_stand_in_the_order_of_the_source_and_nothing_else_does():
    assert [row.name for row, _ in operations_of(Things())] == [
        "make_thing",
        "list_things",
        "guess_thing",
        "read_rules",
    ]


def test_the_methods_of_an_adapter_are_bound():
    things = Things()
    assert [method.__self__ for _, method in operations_of(things)] == [things] * 4


@pytest.mark.parametrize(
    ("name", "refusals"),
    [
        (
            "make_thing",
            {
                400: ("body_invalid", "idempotency_key_invalid"),
                401: ("step_up_required", "token_invalid", "sign_in_required"),
                409: ("thing_exists", "idempotency_running"),
                413: ("body_too_large",),
                415: ("content_type_invalid",),
                422: ("idempotency_mismatch",),
                429: ("rate_limited",),
                503: ("unavailable",),
            },
        ),
        (
            "list_things",
            {
                400: ("query_invalid",),
                401: ("token_invalid", "sign_in_required"),
                429: ("rate_limited",),
                503: ("unavailable",),
            },
        ),
        (
            "guess_thing",
            {
                400: ("body_invalid",),
                413: ("body_too_large",),
                415: ("content_type_invalid",),
                429: ("rate_limited",),
                503: ("unavailable",),
            },
        ),
        ("read_rules", {}),
    ],
)
def test_an_operation_refuses_what_it_declares_and_what_its_kind_does(name, refusals):
    found = row(name).all_refusals()
    assert found == refusals
    assert list(found) == sorted(found)


def test_a_code_that_an_operation_and_its_kind_have_stands_once():
    class Twice:
        @operation("POST", "/twice", refuses={429: ("rate_limited", "session_limit")})
        async def ask_twice(self, call: AnonymousCall[Wanted]) -> Thing:
            """Twice."""
            return Thing("")

    ((twice, _),) = operations_of(Twice)
    assert twice.all_refusals()[429] == ("rate_limited", "session_limit")


def test_what_a_stranger_may_guess_is_what_takes_a_body_from_anybody():
    assert [row.name for row, _ in operations_of(Things) if row.guessable] == ["guess_thing"]


def call(**path: str) -> AnonymousCall[None]:
    return AnonymousCall(body=None, path=path, query=None, address="192.0.2.7")


def test_an_id_in_the_path():
    assert call(thing_id=THING).path_id("thing_id", Problem(404, "thing_unknown", "No.")) == UUID(THING)


@pytest.mark.parametrize("text", [THING.upper(), THING.replace("-", ""), f"urn:uuid:{THING}", f"{THING}\n", "", "x"])
def test_any_other_spelling_of_an_id_is_no_such_thing(text):
    unknown = Problem(404, "thing_unknown", "No.")
    with pytest.raises(Problem) as refused:
        call(thing_id=text).path_id("thing_id", unknown)
    assert refused.value is unknown
