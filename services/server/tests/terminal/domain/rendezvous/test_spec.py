"""The tables of ``docs/spec/rendezvous.md`` are the code: each row of its transitions is played here."""

from pathlib import Path
from typing import get_args

import pytest

from bothy_server.terminal.domain.lone_side import SIDE_NAME, is_given_up
from bothy_server.terminal.domain.rendezvous import (
    Accept,
    Arrived,
    Check,
    Checked,
    Checking,
    Close,
    Count,
    DatabaseBack,
    DatabaseLost,
    Drain,
    Effect,
    EndRow,
    Event,
    Expected,
    Gone,
    Join,
    Paired,
    PairedElsewhere,
    Part,
    Readied,
    ReadRow,
    Redial,
    RowChanged,
    RowRead,
    Stalled,
    TellPaired,
    WriteDetached,
    WriteFailed,
)
from bothy_server.terminal.domain.session import TRANSITIONS, Row, SessionState

SPEC = next(up / "docs/spec/rendezvous.md" for up in Path(__file__).parents if (up / "docs/spec").is_dir())
ACTIVE, DETACHED, CLOSED = SessionState.ACTIVE, SessionState.DETACHED, SessionState.CLOSED
NAMES = {1: "device", 2: "host", 3: "newer"}


def table(heading):
    """The cells of the first table under a heading."""
    section = SPEC.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert rows, heading
    return rows[2:]


# ---- situations: device is connection 1, host 2, a newer one 3


def checking(meeting):
    meeting.device(1)
    meeting.host(2)


def void(meeting):
    checking(meeting)
    meeting.device(3)


def due(meeting):
    checking(meeting)
    meeting.tell(Checked(1, "stale", token="token"))


def asked(meeting):
    meeting.pair()
    meeting.tell(RowChanged(meeting.write(state=DETACHED)))


def device_unpaired(meeting):
    meeting.pair()
    meeting.tell(Gone(2))


def host_unpaired(meeting):
    meeting.pair()
    meeting.tell(Gone(1))


def confirmed(meeting):
    meeting.write(local_confirm=True)


OPENING = {
    "nobody": lambda meeting: None,
    "expected": lambda meeting: meeting.expect(),
    "reading": lambda meeting: meeting.tell(Arrived(1, "device", 1)),
    "device alone": lambda meeting: meeting.device(1),
    "host alone": lambda meeting: meeting.host(2),
    "checking": checking,
    "void": void,
    "paired": lambda meeting: meeting.pair(),
}
RUNNING = {
    "device alone": OPENING["device alone"],
    "host alone": OPENING["host alone"],
    "checking": checking,
    "paired": OPENING["paired"],
    "paired, due": due,
    "paired, asked": asked,
    "device unpaired": device_unpaired,
    "host unpaired": host_unpaired,
}
SITUATIONS = {f"opening: {name}": (None, set_up) for name, set_up in OPENING.items()}
SITUATIONS |= {f"running: {name}": (ACTIVE, set_up) for name, set_up in RUNNING.items()}


# ---- events


def ended(meeting, **reason):
    return meeting.write(state=CLOSED, **(reason or {"close_reason": "idle"}))


def newer_attach(meeting):
    return meeting.write(attach_seq=meeting.row.attach_seq + 1)


MISSED = {"close_reason": "open_failed", "close_detail": "open_timeout"}
EVENTS = {
    "Expected": lambda m: m.tell(Expected(m.row)),
    "Expected, newer attach": lambda m: m.tell(Expected(newer_attach(m))),
    "PairedElsewhere": lambda m: m.tell(PairedElsewhere()),
    "Arrived device": lambda m: m.tell(Arrived(1, "device", 1)),
    "RowRead": lambda m: m.tell(RowRead(1, m.row)),
    "RowRead, newer attach": lambda m: m.tell(RowRead(1, newer_attach(m))),
    "RowRead, closed": lambda m: m.tell(RowRead(1, ended(m))),
    "RowRead, no row": lambda m: m.tell(RowRead(1, None)),
    "RowRead, failed": lambda m: m.tell(RowRead(1, None, failed=True)),
    "newer device": lambda m: m.device(3),
    "newer host": lambda m: m.host(3),
    "Readied device": lambda m: m.tell(Readied(1)),
    "Readied host": lambda m: m.tell(Readied(2)),
    "Gone device": lambda m: m.tell(Gone(1)),
    "Gone host": lambda m: m.tell(Gone(2)),
    "Stalled device": lambda m: m.tell(Stalled(1)),
    "Checked granted": lambda m: m.grant(1),
    "Checked granted, local confirm": lambda m: (m.write(local_confirm=True), m.grant(1))[1],
    "Checked stale": lambda m: m.tell(Checked(1, "stale", token="token")),
    "Checked superseded": lambda m: m.tell(Checked(1, "superseded", newer_attach(m))),
    "Checked denied": lambda m: m.tell(Checked(1, "denied", m.row)),
    "Checked closed": lambda m: m.tell(Checked(1, "closed", ended(m))),
    "Checked unavailable": lambda m: m.tell(Checked(1, "unavailable")),
    "RowChanged, closed": lambda m: m.tell(RowChanged(ended(m))),
    "RowChanged, open_timeout": lambda m: m.tell(RowChanged(ended(m, **MISSED))),
    "RowChanged, active": lambda m: m.tell(RowChanged(m.write(state=ACTIVE, paired=True, paired_seq=1))),
    "RowChanged, detached": lambda m: m.tell(RowChanged(m.write(state=DETACHED))),
    "WriteFailed": lambda m: m.tell(WriteFailed(m.row.paired_seq)),
    "WriteFailed, DatabaseBack": lambda m: m.tell(WriteFailed(m.row.paired_seq)) + m.tell(DatabaseBack()),
    "DatabaseLost": lambda m: m.tell(DatabaseLost()),
    "DatabaseBack": lambda m: m.tell(DatabaseBack()),
    "Drain": lambda m: m.tell(Drain()),
    "open_timeout passes": lambda m: m.wait(m.limits.open_timeout),
    "open_timeout passes, database away": lambda m: m.tell(DatabaseLost()) + m.wait(m.limits.open_timeout),
    "open_timeout passes, draining": lambda m: m.tell(Drain()) + m.wait(m.limits.open_timeout),
    "start_timeout passes": lambda m: m.wait(m.limits.start_timeout),
    "stall_timeout passes": lambda m: m.wait(m.limits.stall_timeout),
    "redial_after passes": lambda m: m.wait(m.limits.redial_after),
    "redial_after passes, RowRead": lambda m: m.wait(m.limits.redial_after) + m.tell(RowRead(1, m.row)),
}


def words(effect):
    match effect:
        case ReadRow(conn) | Accept(conn):
            return f"{type(effect).__name__} {NAMES[conn]}"
        case Close(conn, code):
            return f"Close {NAMES[conn]} {code}"
        case Part(_, stays):
            return f"Part, {NAMES[stays]} stays"
        case Count(side):
            return f"Count {side}"
        case EndRow(detail):
            return f"EndRow {detail}"
        case Check() | Join() | WriteDetached() | Redial() | TellPaired():
            return type(effect).__name__


def phase(meeting):
    if meeting.idle:
        return "idle"
    match meeting.state.phase:
        case Checking(void=void):
            return "checking, void" if void else "checking"
        case Paired(record=record):
            return "paired" if record == "made" else f"paired, {record}"
        case _:
            return "waiting"


def play(meeting, situation, event):
    state, set_up = SITUATIONS[situation]
    if state is not None:
        meeting.running(state)
    set_up(meeting)
    effects = EVENTS[event](meeting)
    return phase(meeting), "; ".join(words(effect) for effect in effects) or "-"


@pytest.mark.parametrize(("situation", "event", "after", "effects", "rule"), table("Transitions"))
def test_transitions(meeting, situation, event, after, effects, rule):
    assert play(meeting, situation, event) == (after, effects)
    assert rule


def test_the_transitions_leave_no_situation_event_or_phase_out():
    rows = table("Transitions")
    assert len({(row[0], row[1]) for row in rows}) == len(rows)
    assert {row[0] for row in rows} == set(SITUATIONS)
    assert {row[1] for row in rows} == set(EVENTS)
    assert {row[2] for row in rows} == {row[0] for row in table("States")}
    effects = {effect.split()[0].rstrip(",") for row in rows for effect in row[3].split("; ")}
    assert effects - {"-"} == {effect.__name__ for effect in get_args(Effect)}


def test_events():
    assert [row[0] for row in table("Events")] == [event.__name__ for event in get_args(Event)]


def test_effects():
    assert [row[0] for row in table("Effects")] == [effect.__name__ for effect in get_args(Effect)]


def test_session_states():
    assert table("Session states") == [[move.source, move.target, move.writer] for move in TRANSITIONS]


@pytest.mark.parametrize(("side", "state", "paired_at", "closes", "ends"), table("The lone side"))
def test_lone_side(side, state, paired_at, closes, ends):
    name, row = SIDE_NAME[side], Row(SessionState(state), 1, paired=paired_at == "set")
    if is_given_up(name, row):
        assert closes == f"4102, counted {name}"
        assert ends == ("open_failed: open_timeout" if row.never_met else "stays")
    else:
        assert (closes, ends) == ("waits", "-")
