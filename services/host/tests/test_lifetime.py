from __future__ import annotations

from bothy_host.lifetime import Bounds, Expire, Lifetime, Warn, attached, deadline, detached, due, moved

BOUNDS = Bounds(idle_timeout=100, idle_grace=10, detach_grace=50, max_duration=1000)


def test_idle_is_warned_about_and_ends():
    life = Lifetime(0, 0)
    assert deadline(life, BOUNDS) == 100
    assert due(life, 99.9, BOUNDS) == (life, None)
    life, word = due(life, 100, BOUNDS)
    assert word == Warn(10)
    assert deadline(life, BOUNDS) == 110
    assert due(life, 109, BOUNDS) == (life, None)
    assert due(life, 110, BOUNDS)[1] == Expire("idle")


def test_a_byte_starts_idle_over():
    warned, _ = due(Lifetime(0, 0), 100, BOUNDS)
    life = moved(warned, 105)
    assert deadline(life, BOUNDS) == 205
    assert due(life, 110, BOUNDS) == (life, None)


def test_idle_counts_only_while_attached():
    life = detached(Lifetime(0, 0), 40)
    assert detached(life, 45) == life
    assert moved(life, 45) == life
    assert deadline(life, BOUNDS) == 90
    assert due(life, 89, BOUNDS) == (life, None)
    assert due(life, 90, BOUNDS)[1] == Expire("detach_expired")
    assert deadline(attached(life, 80), BOUNDS) == 180


def test_nothing_outlives_the_maximum():
    life = moved(Lifetime(0, 0), 990)
    assert deadline(life, BOUNDS) == 1000
    assert due(life, 1000, BOUNDS)[1] == Expire("max_duration")
    assert due(detached(life, 995), 1000, BOUNDS)[1] == Expire("max_duration")


def test_the_lower_bound_holds():
    assert BOUNDS.lower(Bounds(200, 5, 60, 10)) == Bounds(100, 5, 50, 10)
