from __future__ import annotations

from bothy_host.lifetime import (
    Bounds,
    Expire,
    Running,
    Warn,
    acknowledged,
    attached,
    deadline,
    detached,
    due,
    exited,
    moved,
)

BOUNDS = Bounds(idle_timeout=100, idle_grace=10, detach_grace=50, max_duration=1000)


def test_idle_is_warned_about_and_ends():
    life = Running(0, 0)
    assert deadline(life, BOUNDS) == 100
    assert due(life, 99.9, BOUNDS) == (life, None)
    life, word = due(life, 100, BOUNDS)
    assert word == Warn(10)
    assert deadline(life, BOUNDS) == 110
    assert due(life, 109, BOUNDS) == (life, None)
    assert due(life, 110, BOUNDS)[1] == Expire("idle")


def test_a_byte_starts_idle_over():
    warned, _ = due(Running(0, 0), 100, BOUNDS)
    life = moved(warned, 105)
    assert deadline(life, BOUNDS) == 205
    assert due(life, 110, BOUNDS) == (life, None)


def test_idle_counts_only_while_attached():
    life = detached(Running(0, 0), 40)
    assert detached(life, 45) == life
    assert moved(life, 45) == life
    assert deadline(life, BOUNDS) == 90
    assert due(life, 89, BOUNDS) == (life, None)
    assert due(life, 90, BOUNDS)[1] == Expire("detach_expired")
    assert deadline(attached(life, 80), BOUNDS) == 180


def test_nothing_outlives_the_maximum():
    life = moved(Running(0, 0), 990)
    assert deadline(life, BOUNDS) == 1000
    assert due(life, 1000, BOUNDS)[1] == Expire("max_duration")
    assert due(detached(life, 995), 1000, BOUNDS)[1] == Expire("max_duration")


def test_the_lower_bound_holds():
    assert BOUNDS.lower(Bounds(200, 5, 60, 10)) == Bounds(100, 5, 50, 10)


def test_behind_an_exit_only_its_output_waits_from_the_last_that_was_taken():
    life = exited(10, linger=60)
    assert deadline(life, BOUNDS) == 70
    assert acknowledged(Running(0, 0), 30) == Running(0, 0)
    life = acknowledged(life, 30)
    assert detached(moved(life, 40), 50) == life, "nothing else counts"
    assert due(life, 89, BOUNDS) == (life, None)
    assert due(life, 90, BOUNDS) == (life, Expire("process_exited"))
    assert deadline(attached(life, 85), BOUNDS) == 145
