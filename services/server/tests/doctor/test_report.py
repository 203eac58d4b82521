from __future__ import annotations

import json

from bothy_server.doctor.finding import failed, ok, unseen
from bothy_server.doctor.report import as_json, passed, table


def test_what_an_edge_said_does_not_steer_the_terminal() -> None:
    shown = table([ok("edge", "api\x1b[2J\r\n\x9b31m-1")])
    assert shown == "ok     edge             api?[2J???31m-1"


def test_a_fix_stands_below_what_failed_and_nowhere_else() -> None:
    findings = [ok("edge", "there"), failed("migrations", "0002 is missing"), unseen("idle", "no edge")]
    assert table(findings).splitlines()[2] == "       fix: run `bothy-server migrate`"
    assert len(table(findings).splitlines()) == 4
    told = json.loads(as_json(findings))
    assert told["ok"] is False
    assert [each["fix"] for each in told["checks"]] == [None, "run `bothy-server migrate`", None]


def test_what_could_not_be_seen_is_no_fault() -> None:
    assert passed([ok("edge", "there"), unseen("idle", "no edge")])
