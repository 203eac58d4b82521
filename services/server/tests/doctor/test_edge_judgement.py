from __future__ import annotations

import pytest

from bothy_server.doctor.edge_judgement import Answers, Held, buffering, idle, routing, trusted_proxies
from bothy_server.doctor.finding import Verdict
from bothy_server.platform.edge_probe import Seen

FORGED = "203.0.113.7"
SAME = [Answers("a", "a", "a"), Answers("b", "b", "b")]


@pytest.mark.parametrize(
    ("answers", "living", "verdicts"),
    [
        (SAME, {"a", "b"}, ["ok", "ok", "ok"]),
        (SAME, None, ["ok", "ok", "unseen"]),
        (SAME, {"a", "b", "c"}, ["ok", "ok", "failed"]),
        (SAME, {"a"}, ["ok", "ok", "failed"]),
        ([*SAME, Answers("a", "b", "a")], {"a", "b"}, ["ok", "failed", "ok"]),
        ([*SAME, Answers("a", "b", "b")], {"a", "b"}, ["failed", "unseen", "ok"]),
    ],
)
def test_routing(answers: list[Answers], living: set[str] | None, verdicts: list[str]) -> None:
    assert [each.verdict.value for each in routing(answers, living)] == verdicts


@pytest.mark.parametrize(
    ("peer", "forwarded", "client", "verdict"),
    [
        ("10.0.0.2", [FORGED, "198.51.100.1"], "198.51.100.1", Verdict.OK),
        ("10.0.0.2", ["198.51.100.1"], "198.51.100.1", Verdict.OK),
        ("10.0.0.2", [FORGED, "198.51.100.1", "10.0.1.3"], "10.0.1.3", Verdict.FAILED),
        ("10.0.0.2", [FORGED, "198.51.100.1"], "10.0.0.2", Verdict.FAILED),
        ("10.0.0.2", [FORGED], FORGED, Verdict.FAILED),
        ("10.0.0.2", [], "10.0.0.2", Verdict.FAILED),
        ("10.0.0.2", [FORGED, "10.0.0.3"], FORGED, Verdict.UNSEEN),
    ],
)
def test_trusted_proxies(peer: str, forwarded: list[str], client: str, verdict: Verdict) -> None:
    seen = Seen("a", peer, forwarded, client, "https", "relay.example.com", (), None)
    assert trusted_proxies(seen, FORGED).verdict is verdict


@pytest.mark.parametrize(
    ("early_s", "last_s", "verdicts"),
    [
        (0.2, 2.2, ["ok", "ok"]),
        (2.2, 2.2, ["failed", "ok"]),
        (0.2, None, ["ok", "failed"]),
        (None, None, ["unseen", "failed"]),
    ],
)
def test_a_held_answer(early_s: float | None, last_s: float | None, verdicts: list[str]) -> None:
    held = Held(early_s, last_s, 2.0)
    assert [buffering(held).verdict.value, idle(held).verdict.value] == verdicts
