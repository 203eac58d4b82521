"""The console's files: what is served, to whom in which form, and with which headers; nothing else is."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from bothy_server.platform.console import Console
from bothy_server.platform.http import SecurityHeaders, exception_handlers

PAGE = b"<!doctype html><title>bothy</title>"
SCRIPT = b"console.log('bothy');\n" * 50
NAME = "main-0A1B2C3D.js"
ORIGINS = ("https://relay.example.com", "http://127.0.0.1:8080")


def serving(folder: Path) -> TestClient:
    app = Starlette(
        routes=Console(ORIGINS, folder).routes(),
        middleware=[Middleware(SecurityHeaders)],
        exception_handlers=dict(exception_handlers(1)),
    )
    app.router.redirect_slashes = False
    return TestClient(app)


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """What a build leaves, beside what nobody may have."""
    (tmp_path / "dist/assets/folder").mkdir(parents=True)
    for name, content in {
        "index.html": PAGE,
        "built_from": b"a hash",
        f"assets/{NAME}": SCRIPT,
        f"assets/{NAME}.gz": gzip.compress(SCRIPT),
        f"assets/{NAME}.br": b"smaller still",
        "assets/style-AAAAAAAA.css": b"body { color: black }",
        "assets/notes.txt": b"words",
        "assets/main.js.map": b"{}",
    }.items():
        (tmp_path / "dist" / name).write_bytes(content)
    (tmp_path / "secret.txt").write_bytes(b"nobody's")
    return tmp_path / "dist"


@pytest.fixture
def client(built: Path) -> TestClient:
    return serving(built)


def test_the_page_carries_the_whole_policy(client: TestClient) -> None:
    answer = client.get("/")
    assert (answer.status_code, answer.content) == (200, PAGE)
    policy = dict(each.split(" ", 1) for each in answer.headers["content-security-policy"].split("; "))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "connect-src": "'self' wss://relay.example.com ws://127.0.0.1:8080",
        "img-src": "'self' data:",
        "font-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
        "report-uri": "/csp-reports",
    }
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "set-cookie" not in answer.headers
    permitted = set(answer.headers["permissions-policy"].split(", "))
    assert {each for each in permitted if not each.endswith("=()")} == {
        "clipboard-read=(self)",
        "clipboard-write=(self)",
        "publickey-credentials-create=(self)",
        "publickey-credentials-get=(self)",
    }
    assert {"camera=()", "microphone=()", "geolocation=()"} <= permitted


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip, deflate, br", "br"),
        ("GZIP", "gzip"),
        ("br;q=0, gzip;q=0.5", "gzip"),
        ("br; q=0.000 , gzip;q=0", None),
        ("identity", None),
        ("*", None),
        ("", None),
    ],
)
def test_an_asset_is_served_in_the_smallest_form_that_is_accepted(
    client: TestClient, accepted: str, encoding: str | None
) -> None:
    with client.stream("GET", f"/assets/{NAME}", headers={"accept-encoding": accepted}) as answer:
        raw = b"".join(answer.iter_raw())
    assert answer.headers.get("content-encoding") == encoding
    assert raw == {"br": b"smaller still", "gzip": gzip.compress(SCRIPT), None: SCRIPT}[encoding]
    assert answer.headers["vary"] == "accept-encoding"
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"


def test_a_name_without_a_hash_is_kept_by_nobody(client: TestClient) -> None:
    answer = client.get("/assets/notes.txt")
    assert (answer.text, answer.headers["cache-control"]) == ("words", "no-store")


@pytest.mark.parametrize("path", ["/", f"/assets/{NAME}"])
def test_head_has_the_headers_alone(client: TestClient, path: str) -> None:
    head, get = client.head(path), client.get(path)
    assert head.headers == get.headers
    assert client.post(path).status_code == 405


@pytest.mark.parametrize(
    "path",
    [
        "/index.html",
        "/built_from",
        "/assets",
        "/assets/",
        "/assets/folder",
        f"/assets/{NAME}/",
        f"/assets/{NAME}.gz",
        f"/assets/{NAME}.br",
        "/assets/main.js.map",
        "/assets/../index.html",
        "/assets/..%2findex.html",
        "/assets/%2e%2e/index.html",
        "/assets/..%2f..%2fsecret.txt",
        "/assets/..\\index.html",
        "/assets/%00",
        "//assets/notes.txt",
        "/assets//notes.txt",
        "/ASSETS/notes.txt",
    ],
)
def test_there_is_nothing_else(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert PAGE not in answer.content
    assert b"nobody's" not in answer.content


def test_what_is_served_is_of_one_build(built: Path, client: TestClient) -> None:
    (built / "index.html").write_bytes(b"a newer build")
    (built / "assets" / NAME).unlink()
    assert client.get("/").content == PAGE
    assert client.get(f"/assets/{NAME}", headers={"accept-encoding": ""}).content == SCRIPT


def test_a_server_without_a_build_says_how_to_make_one(tmp_path: Path) -> None:
    answer = serving(tmp_path / "nowhere").get("/")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/plain; charset=utf-8")
    assert "`make console` builds it" in answer.text
