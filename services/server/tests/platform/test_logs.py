"""The log: one object a line, no secret in it, no flood."""

import io
import json
import logging

import pytest

from bothy_server.kernel.rates import Rate
from bothy_server.platform.logs import REDACTED, RepeatedWarnings, configure_logging, redact
from bothy_server.platform.settings import Log

log = logging.getLogger("bothy.test")


@pytest.fixture
def written():
    """What the process logs, as it stands in the stream; the root logger is put back."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    stream = io.StringIO()

    def configure(**settings) -> io.StringIO:
        configure_logging(Log(**settings), stream)
        return stream

    yield configure
    root.handlers[:], root.level = before[0], before[1]


def records(stream: io.StringIO) -> list[dict]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_record_is_an_object_with_its_fields(written):
    stream = written()
    log.warning("terminal relay side unpaired", extra={"bothy.terminal.side": "client", "bothy.close.code": 4102})
    (record,) = records(stream)
    assert record.pop("timestamp").endswith("Z")
    assert record == {
        "event": "terminal relay side unpaired",
        "level": "warning",
        "logger": "bothy.test",
        "bothy.terminal.side": "client",
        "bothy.close.code": 4102,
    }


def test_text_for_a_person(written):
    stream = written(format="console")
    log.info("started", extra={"component": "event_tail"})
    assert "started" in stream.getvalue()
    assert "component=event_tail" in stream.getvalue()


def test_the_level_is_a_key(written):
    stream = written(level="error")
    log.warning("no")
    log.error("yes")
    assert [record["event"] for record in records(stream)] == ["yes"]


def test_a_traceback_keeps_its_shape_and_loses_its_secrets(written):
    stream = written()
    try:
        raise ValueError("postgresql://bothy:hush@db.example.com/bothy")
    except ValueError:
        log.exception("failed")
    (record,) = records(stream)
    assert "Traceback" in record["exception"]
    assert "hush" not in stream.getvalue()
    assert "db.example.com" in record["exception"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("access_token", "t0p"),
        ("Authorization", "Bearer t0p"),
        ("password", "t0p"),
        ("signing_secret", "t0p"),
        ("signature", b"t0p"),
        ("challenge", "t0p"),
        ("pairing_code", "t0p"),
        ("cookie", "t0p"),
        ("private_key", "t0p"),
    ],
)
def test_a_secret_is_known_by_its_name(name, value):
    assert redact(None, "", {name: value}) == {name: REDACTED}


@pytest.mark.parametrize(
    "text",
    [
        "got eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl from a device",
        "dialling postgresql://bothy:hush@db/bothy",
        "code 7QK3M-0ABCD-12345-ZZZZZ-9XYW was typed",
    ],
)
def test_a_secret_is_known_by_its_look(text):
    (clean,) = redact(None, "", {"event": text}).values()
    assert REDACTED in clean
    for secret in ("eyJhbG", "hush", "7QK3M"):
        assert secret not in clean


def test_secrets_inside_of_others_are_found_and_the_rest_stays():
    record = {"request": {"token": "t0p", "path": "/api/v1/hosts"}, "items": ["a", b"12345"], "bothy.close.code": 4102}
    assert redact(None, "", record) == {
        "request": {"token": REDACTED, "path": "/api/v1/hosts"},
        "items": ["a", "[5 bytes]"],
        "bothy.close.code": 4102,
    }


class TestRepeatedWarnings:
    @pytest.fixture
    def now(self):
        return [100.0]

    @pytest.fixture
    def limiter(self, now):
        return RepeatedWarnings(Rate(2, 60), lambda: now[0])

    def passes(self, limiter, message="signal dropped", level=logging.WARNING, args=()):
        record = logging.LogRecord("bothy", level, "", 0, message, args, None)
        return getattr(record, "left_out", 0) if limiter.filter(record) else None

    def test_so_many_a_period_and_the_next_one_counts_the_others(self, limiter, now):
        assert [self.passes(limiter) for _ in range(5)] == [0, 0, None, None, None]
        now[0] += 60
        assert [self.passes(limiter) for _ in range(2)] == [3, 0]

    def test_kinds_do_not_share(self, limiter):
        assert [self.passes(limiter) for _ in range(3)] == [0, 0, None]
        assert self.passes(limiter, "listener lost") == 0

    def test_arguments_make_no_kind(self, limiter):
        assert [self.passes(limiter, "took %s s", args=(n,)) for n in range(3)] == [0, 0, None]

    @pytest.mark.parametrize("level", [logging.INFO, logging.ERROR])
    def test_other_levels_always_pass(self, limiter, level):
        assert [self.passes(limiter, level=level) for _ in range(4)] == [0] * 4

    def test_kinds_without_end_take_bounded_memory(self, limiter):
        for number in range(1000):
            self.passes(limiter, f"kind {number}")
        assert len(limiter._windows) <= 256
