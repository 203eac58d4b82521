from itertools import permutations

import pytest

from bothy_server.terminal.domain.rendezvous import (
    Accept,
    Arrived,
    Close,
    Count,
    EndRow,
    Expected,
    Gone,
    Part,
    Readied,
    RowChanged,
    Stalled,
    WriteDetached,
)
from bothy_server.terminal.domain.session import SessionState
from bothy_wire.close_codes import CloseCode

MISSED = {"state": SessionState.CLOSED, "close_reason": "open_failed", "close_detail": "open_timeout"}


def test_e3_a_session_that_another_node_gave_up_closes_a_lone_side_as_its_own_timer_would(meeting):
    meeting.host(1)
    assert meeting.tell(RowChanged(meeting.write(**MISSED))) == [
        Count("host"),
        Close(1, CloseCode.HOST_UNAVAILABLE, "terminal_host_unavailable"),
    ]
    assert meeting.idle


def test_e3_only_a_lone_side_that_never_met_gets_4102_then(meeting, new_meeting):
    meeting.device(1)
    meeting.host(2)
    meeting.tell(Arrived(3, "host"))
    effects = meeting.tell(RowChanged(meeting.write(**MISSED)))
    assert effects == [Close(conn, CloseCode.SESSION_ENDED, "open_failed: open_timeout") for conn in (3, 1, 2)]

    met = new_meeting()
    met.pair()
    met.tell(Gone(2))
    assert met.tell(RowChanged(met.write(**MISSED))) == [Close(1, CloseCode.SESSION_ENDED, "open_failed: open_timeout")]


@pytest.mark.parametrize("first", list(permutations(["device", "host", "expectation"])))
def test_e3_code_and_count_do_not_depend_on_which_node_ends_the_row(new_meeting, first):
    """Three nodes: a device on one, its host on another, nobody on the third; each may be the first to give up."""
    nodes = {name: new_meeting() for name in first}
    for lateness, name in enumerate(first):
        node = nodes[name]
        node.now = lateness / 1000
        if name == "expectation":
            node.expect()
        else:
            node.arrive(1, name, 1)

    ended = None
    counted, closed = [], []
    for lateness, name in enumerate(first):
        node = nodes[name]
        if ended is None:
            effects = node.wait(20 + lateness / 1000)
            assert EndRow("open_timeout") in effects
            ended = node.write(**MISSED)
            effects += node.tell(RowChanged(ended))
        else:
            effects = node.tell(RowChanged(ended))
            assert EndRow("open_timeout") not in effects
        counted += [effect.side for effect in effects if isinstance(effect, Count)]
        closed += [effect.code for effect in effects if isinstance(effect, Close)]
        assert node.idle

    assert sorted(counted) == ["client", "host"]
    assert closed == [CloseCode.HOST_UNAVAILABLE] * 2


def test_s2_the_end_of_a_session_closes_both_sides_of_a_pair_with_its_reason(meeting):
    meeting.pair()
    assert meeting.tell(RowChanged(meeting.write(state=SessionState.CLOSED, close_reason="process_exited"))) == [
        Close(1, CloseCode.SESSION_ENDED, "process_exited"),
        Close(2, CloseCode.SESSION_ENDED, "process_exited"),
    ]
    assert meeting.idle


def test_s5_a_late_version_of_the_row_does_not_bring_a_closed_session_back(meeting):
    late = Expected(meeting.row)
    meeting.tell(RowChanged(meeting.write(state=SessionState.CLOSED, close_reason="idle")))
    assert meeting.tell(late) == []
    assert meeting.idle


def test_e4a_side_ready_makes_an_unpaired_side_ready(meeting):
    meeting.pair()
    meeting.tell(Gone(1))
    assert not meeting.state.host.ready
    assert meeting.tell(Readied(2)) == []
    assert meeting.state.host.ready


@pytest.mark.parametrize("conn", [1, 2])
def test_side_ready_that_nobody_asked_for_is_4105(meeting, conn):
    meeting.pair()
    effects = meeting.tell(Readied(conn))
    assert effects[0] == Part(1, stays=3 - conn, leaves=conn)
    assert effects[-1] == Close(conn, CloseCode.PROTOCOL_VIOLATION, "protocol_violation") or conn == 1


def test_side_ready_of_a_side_that_is_not_here_is_late(meeting):
    assert meeting.tell(Readied(1)) == []


def test_a_side_that_takes_nothing_closes_4106(meeting):
    meeting.running().pair()
    assert meeting.tell(Stalled(1)) == [
        Part(1, stays=2, leaves=1),
        WriteDetached(6),
        Close(1, CloseCode.STALLED, "stalled"),
    ]


def test_word_of_a_stalled_side_that_is_not_here_is_late(meeting):
    assert meeting.tell(Stalled(1)) == []


def test_e7_a_late_end_of_a_replaced_side_leaves_the_newer_one(meeting):
    meeting.host(1)
    meeting.host(2)
    assert meeting.tell(Gone(1)) == []
    assert meeting.state.host.conn == 2


def test_e5_the_pair_parts_before_the_code_is_written(meeting):
    """The close frame goes behind the filled message of the pair (docs/spec/protocol.md)."""
    meeting.pair()
    assert meeting.device(3) == [
        Part(1, stays=2, leaves=1),
        Close(1, CloseCode.REPLACED, "replaced"),
        Accept(3),
    ]
