"""Reports of broken page policies: counted by directive; nothing else of them is kept or told."""

from __future__ import annotations

import json
import logging

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from bothy_server.platform.http import exception_handlers
from bothy_server.platform.page_reports import REPORTS_PATH, PageReports
from bothy_server.platform.telemetry import Metrics


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def client(metrics: Metrics) -> TestClient:
    return TestClient(Starlette(routes=[PageReports(metrics).route()], exception_handlers=dict(exception_handlers(1))))


def counted(metrics: Metrics) -> dict[str, int]:
    found = {}
    for line in metrics.render().decode().splitlines():
        if line.startswith("bothy_page_reports_total{") and not line.endswith(" 0.0"):
            found[line.partition('directive="')[2].partition('"')[0]] = int(float(line.rpartition(" ")[2]))
    return found


def old(**fields: object) -> dict[str, object]:
    return {"csp-report": {"document-uri": "https://relay.example.com/#secret", "blocked-uri": "inline", **fields}}


def new(directive: object) -> dict[str, object]:
    return {"type": "csp-violation", "age": 1, "body": {"effectiveDirective": directive, "sample": "a secret"}}


@pytest.mark.parametrize(
    ("report", "directives"),
    [
        (old(**{"effective-directive": "style-src-elem"}), {"style-src-elem": 1}),
        (old(**{"violated-directive": "script-src 'self'"}), {"script-src": 1}),
        ([new("connect-src"), new("img-src"), new("img-src")], {"connect-src": 1, "img-src": 1}),
        (old(**{"effective-directive": "x" * 1000}), {"other": 1}),
        (new(None), {"other": 1}),
        ([], {"other": 1}),
        (old(), {"other": 1}),
        ([[[]], 7, None, "a"], {"other": 1}),
    ],
)
def test_a_report_is_counted_by_its_directive(
    client: TestClient, metrics: Metrics, caplog: pytest.LogCaptureFixture, report: object, directives: dict[str, int]
) -> None:
    with caplog.at_level(logging.WARNING):
        answer = client.post(
            REPORTS_PATH, content=json.dumps(report), headers={"content-type": "application/csp-report"}
        )
    assert (answer.status_code, answer.content) == (204, b"")
    assert counted(metrics) == directives
    assert {each.getMessage() for each in caplog.records if each.name.startswith("bothy")} == {"page policy broken"}
    told = " ".join(str(each.__dict__) for each in caplog.records)
    assert "secret" not in told
    assert "relay.example.com" not in told


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 8000])
def test_what_is_no_report_is_counted_as_another_one(client: TestClient, metrics: Metrics, body: bytes) -> None:
    assert client.post(REPORTS_PATH, content=body).status_code == 204
    assert counted(metrics) == {"other": 1}


def test_a_report_that_is_too_long_is_not_read(client: TestClient, metrics: Metrics) -> None:
    assert client.post(REPORTS_PATH, content=b"[" + b" " * 16 * 1024 + b"]").status_code == 413
    assert counted(metrics) == {}


def test_a_report_is_only_posted(client: TestClient) -> None:
    assert client.get(REPORTS_PATH).status_code == 405
