"""Sessions in a world that breaks keep every promise, and a rule that is missing shows."""

import pytest

from bothy_kit.rendezvous_world import Scenario, play


def test_a_calm_session_pairs_at_once_and_loses_nobody() -> None:
    ends, broken, seen = play(range(300), Scenario(faults=False))
    assert not broken
    assert ends == {"paired": 300}
    assert seen["pairings"] == 300


def test_sessions_survive_a_storm() -> None:
    ends, broken, seen = play(range(300), Scenario())
    assert not broken
    assert ends["paired"] > 280
    # The storm reached what it is there for.
    for what in (
        "bytes",
        "redials",
        "stale pairs",
        "close 4103",
        "close 1000",
        "close 1012",
        "close 1013",
        "close 4102",
    ):
        assert seen[what], what


def test_sessions_survive_a_storm_behind_an_edge_without_the_hash_rule() -> None:
    ends, broken, seen = play(range(120), Scenario(split=True))
    assert not broken
    assert ends["paired"] > 90
    assert ends["closed open_failed: open_timeout"]
    assert seen["unpaired client"]
    assert seen["unpaired host"]


@pytest.mark.parametrize(
    ("without", "promise"),
    [
        (Scenario(fence=False), "the row was detached while its pair lived"),
        (Scenario(newest_attach=False), "an older attach was paired over a newer one"),
        (Scenario(faults=False, keep_host=False), "a side was closed although nothing went wrong"),
        (Scenario(split=True, leave_older=False), "a session with two relays"),
    ],
    ids=[
        "without the fence of E4b",
        "without attach_seq in the check of E4",
        "with a host closed by session_open",
        "with a host that keeps its older connection (E6)",
    ],
)
def test_the_simulation_notices_a_missing_rule(without: Scenario, promise: str) -> None:
    _, broken, _ = play(range(120), without)
    assert any(why.startswith(promise) for why in broken)
