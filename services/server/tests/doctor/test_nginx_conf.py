from __future__ import annotations

from pathlib import Path

import pytest

from bothy_kit.nginx import SHIPPED
from bothy_server.doctor.finding import Verdict
from bothy_server.doctor.nginx_conf import ConfError, judge, read

QUIET_S = 43_260.0


def found(text: str, folder: Path) -> dict[str, Verdict]:
    file = folder / "nginx.conf"
    file.write_text(text)
    return {each.check: each.verdict for each in judge(read(file), QUIET_S)}


def test_the_edge_as_shipped_is_in_order() -> None:
    findings = judge(read(SHIPPED / "nginx.conf"), QUIET_S)
    assert [each.verdict for each in findings] == [Verdict.OK] * 4


@pytest.mark.parametrize(
    ("upstream", "location", "failing"),
    [
        ("zone z 64k; hash $id consistent;", "proxy_read_timeout 12h1m;", set()),
        ("zone z 64k; hash $id consistent;", "", {"conf.timeout"}),
        ("zone z 64k; hash $id consistent;", "proxy_read_timeout 1w;", set()),
        ("zone z 64k; hash $id;", "proxy_read_timeout 1d;", {"conf.hash"}),
        ("zone z 64k; hash $uri$id consistent;", "proxy_read_timeout 1d;", {"conf.hash"}),
        ("least_conn;", "proxy_read_timeout 500ms;", {"conf.zone", "conf.hash", "conf.timeout"}),
    ],
)
def test_each_fault_has_its_line(upstream: str, location: str, failing: set[str], tmp_path: Path) -> None:
    verdicts = found(
        f"""http {{ # a comment; with {{ marks
            upstream up {{ server "api:8080"; {upstream} }}
            server {{
                location /api/v1/ {{ proxy_pass http://up; {location} }}
                location / {{ proxy_pass http://elsewhere; }}
            }}
        }}""",
        tmp_path,
    )
    assert {check for check, verdict in verdicts.items() if verdict is Verdict.FAILED} == failing


def test_a_file_without_the_stream_paths_shows_nothing(tmp_path: Path) -> None:
    assert set(found("http { server { location / { return 404; } } }", tmp_path).values()) == {Verdict.UNSEEN}


def test_a_file_that_is_spread_as_distributions_do(tmp_path: Path) -> None:
    """Absolute names with wildcards, names relative to the main file, and a server before ours that only redirects."""
    for name, text in {
        "sites-enabled/relay": "include snippets/up.conf; server { location / { proxy_pass http://up; } }",
        "snippets/up.conf": "upstream up { server api:8080; hash $id consistent; }",
    }.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    verdicts = found(
        f"""include {tmp_path}/modules-enabled/*.conf;
        http {{
            proxy_read_timeout 2d;
            server {{ listen 80; location / {{ return 301 https://$host$request_uri; }} }}
            include {tmp_path}/sites-enabled/*;
        }}""",
        tmp_path,
    )
    assert {check: verdict.value for check, verdict in verdicts.items()} == {
        "conf.zone": "failed",
        "conf.upstreams": "ok",
        "conf.hash": "ok",
        "conf.timeout": "ok",
    }


@pytest.mark.parametrize(
    "text",
    [
        "include nginx.conf;",
        "include absent/nginx.conf; ; }",
        "{ }",
        'http { "',
        "http {",
        "http { } }",
        "http { zone }",
    ],
)
def test_what_is_no_configuration_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "nginx.conf").write_text(text)
    with pytest.raises(ConfError):
        read(tmp_path / "nginx.conf")
