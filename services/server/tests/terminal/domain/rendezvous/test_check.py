import pytest

from bothy_server.terminal.domain.rendezvous import (
    Accept,
    Check,
    Checked,
    Checking,
    Close,
    DatabaseBack,
    DatabaseLost,
    Drain,
    EndRow,
    Gone,
    Join,
    Paired,
    Part,
    Readied,
    RowChanged,
    TellPaired,
    Waiting,
    WriteDetached,
    WriteFailed,
)
from bothy_server.terminal.domain.session import SessionState
from bothy_wire.close_codes import CloseCode


def test_e4_the_check_begins_when_both_sides_are_here_and_ready(meeting):
    assert meeting.device(1) == [Accept(1)]
    assert meeting.host(2) == [Accept(2), Check(1, device=1, host=2, seq=1)]


def test_e4_no_check_before_a_side_is_ready(meeting):
    meeting.pair()
    meeting.tell(Gone(2))
    assert meeting.host(3) == [Accept(3)]
    assert meeting.tell(Readied(1)) == [Check(2, device=1, host=3, seq=1)]


def test_e4_granted_joins(meeting):
    assert meeting.pair() == [Join(1, device=1, host=2, token="token")]


def test_e4_superseded_closes_the_device_and_keeps_the_host(meeting):
    meeting.device(1)
    meeting.host(2)
    effects = meeting.tell(Checked(1, "superseded", meeting.write(attach_seq=2)))
    assert effects == [Close(1, CloseCode.REPLACED, "replaced")]
    assert meeting.state.host.conn == 2
    assert meeting.state.host.ready


def test_e4_superseded_closes_the_device_whatever_the_row_says(meeting):
    """Otherwise a row whose attach_seq went back, by a restored database, would be checked for ever."""
    meeting.device(1)
    meeting.host(2)
    assert meeting.tell(Checked(1, "superseded", meeting.row)) == [Close(1, CloseCode.REPLACED, "replaced")]
    assert meeting.state.phase == Waiting()


def test_e4_denied_ends_the_row_and_closes_both(meeting):
    meeting.device(1)
    meeting.host(2)
    assert meeting.tell(Checked(1, "denied", meeting.row)) == [
        EndRow("revoked"),
        Close(1, CloseCode.SESSION_ENDED, "revoked"),
        Close(2, CloseCode.SESSION_ENDED, "revoked"),
    ]
    assert meeting.idle


def test_e4_closed_closes_both(meeting):
    meeting.device(1)
    meeting.host(2)
    ended = meeting.write(state=SessionState.CLOSED, close_reason="open_failed", close_detail="start_timeout")
    assert meeting.tell(Checked(1, "closed", ended)) == [
        Close(1, CloseCode.SESSION_ENDED, "open_failed: start_timeout"),
        Close(2, CloseCode.SESSION_ENDED, "open_failed: start_timeout"),
    ]


def test_e4_unavailable_closes_the_device_and_the_host_waits(meeting):
    meeting.device(1)
    meeting.host(2)
    assert meeting.tell(Checked(1, "unavailable")) == [Close(1, CloseCode.BUSY, "busy")]
    assert meeting.state.host.ready


@pytest.mark.parametrize("newer", ["device", "host"])
def test_e4_a_check_whose_side_changed_is_awaited_and_undone_then_a_new_one_starts(meeting, newer):
    meeting.device(1)
    meeting.host(2)
    replaced = {"device": Close(1, CloseCode.REPLACED, "replaced"), "host": Close(2, CloseCode.NORMAL, "normal")}
    assert meeting.arrive(3, newer, 1) == [replaced[newer], Accept(3)]
    assert meeting.state.phase == Checking(1, void=True)
    device, host = (3, 2) if newer == "device" else (1, 3)
    assert meeting.grant(1) == [WriteDetached(1), Check(2, device, host, 1)]


def test_e4_a_void_check_that_was_refused_wrote_nothing_and_undoes_nothing(meeting):
    meeting.device(1)
    meeting.host(2)
    meeting.tell(Gone(1))
    assert meeting.tell(Checked(1, "unavailable")) == []
    assert meeting.state.phase == Waiting()


def test_e4_a_row_that_closed_during_the_check_is_forgotten_only_after_the_answer(meeting):
    meeting.device(1)
    meeting.host(2)
    ended = meeting.write(state=SessionState.CLOSED, close_reason="client_closed")
    assert len(meeting.tell(RowChanged(ended))) == 2
    assert not meeting.idle
    meeting.tell(Checked(1, "closed", ended))
    assert meeting.idle


def test_e4_an_answer_that_nobody_asked_for_is_a_defect(meeting):
    meeting.pair()
    with pytest.raises(ValueError, match="nobody asked"):
        meeting.tell(Checked(9, "granted", meeting.row, 9, "token"))


def test_e4b_a_device_that_leaves_a_pair_writes_detached_with_its_pairing(meeting):
    meeting.pair()
    assert meeting.tell(Gone(1)) == [Part(1, stays=2, leaves=1), WriteDetached(1)]


def test_e4b_a_device_that_lost_its_host_writes_detached_when_it_leaves(meeting):
    meeting.pair()
    meeting.tell(Gone(2))
    assert meeting.tell(Gone(1)) == [WriteDetached(1)]


def test_e4b_a_host_that_leaves_a_pair_writes_nothing(meeting):
    meeting.pair()
    assert meeting.tell(Gone(2)) == [Part(1, stays=1, leaves=2)]


def test_e4b_a_device_that_never_met_writes_nothing(meeting):
    meeting.running().device(1)
    assert meeting.tell(Gone(1)) == []


def test_e4b_a_pair_whose_row_was_detached_runs_the_statement_again(meeting):
    meeting.pair()
    meeting.tell(RowChanged(meeting.write(state=SessionState.ACTIVE)))
    late = meeting.write(state=SessionState.DETACHED)
    assert meeting.tell(RowChanged(late)) == [Check(1, 1, 2, 1)]
    assert meeting.tell(RowChanged(late)) == []
    assert meeting.grant(1) == []
    assert meeting.state.phase == Paired(1, "made")
    assert meeting.tell(Gone(1)) == [Part(1, 2, 1), WriteDetached(2)]


def test_e4b_an_old_version_of_the_row_is_no_reason_to_run_it_again(meeting):
    old = meeting.running(SessionState.DETACHED).row
    meeting.pair()
    assert meeting.tell(RowChanged(old)) == []


def test_e4b_a_pair_that_ends_while_it_is_recorded_again_undoes_that(meeting):
    meeting.running(SessionState.DETACHED).pair()
    meeting.tell(RowChanged(meeting.write(state=SessionState.DETACHED)))
    assert meeting.tell(Gone(1)) == [Part(1, stays=2, leaves=1), WriteDetached(6)]
    assert not meeting.idle
    assert meeting.grant(1) == [WriteDetached(7)]


@pytest.mark.parametrize(
    ("outcome", "effects"),
    [
        ("superseded", [Part(1, stays=2, leaves=1), Close(1, CloseCode.REPLACED, "replaced")]),
        (
            "denied",
            [
                EndRow("revoked"),
                Close(1, CloseCode.SESSION_ENDED, "revoked"),
                Close(2, CloseCode.SESSION_ENDED, "revoked"),
            ],
        ),
        ("unavailable", []),
        ("stale", []),
    ],
)
def test_e4b_what_the_statement_answers_a_pair(meeting, outcome, effects):
    meeting.running(SessionState.DETACHED).pair()
    meeting.tell(RowChanged(meeting.write(state=SessionState.DETACHED)))
    assert meeting.tell(Checked(1, outcome, meeting.row)) == effects


def test_e3_a_pairing_here_ends_the_expectation(meeting):
    meeting.write(local_confirm=True)
    meeting.expect()
    meeting.pair()
    meeting.tell(Gone(1))
    meeting.tell(Gone(2))
    assert meeting.idle


def test_h1_the_pairing_node_bounds_the_start(meeting):
    meeting.pair()
    assert meeting.deadline == 30
    assert meeting.wait(30) == [EndRow("start_timeout")]


def test_h1_a_pairing_again_does_not_move_the_bound(meeting):
    meeting.pair()
    meeting.now = 10
    meeting.host(3)
    meeting.tell(Readied(1))
    meeting.grant(2)
    assert meeting.deadline == 30


def test_h1_a_started_session_has_no_bound(meeting):
    meeting.pair()
    meeting.tell(RowChanged(meeting.write(state=SessionState.ACTIVE)))
    assert meeting.deadline is None


def test_h1_the_bound_stays_when_the_sides_leave(meeting):
    meeting.pair()
    meeting.tell(Gone(1))
    meeting.tell(Gone(2))
    assert not meeting.idle
    assert meeting.wait(30) == [EndRow("start_timeout")]
    assert meeting.idle


def test_h1_a_void_check_that_set_paired_at_bounds_the_start_too(meeting):
    meeting.device(1)
    meeting.host(2)
    meeting.tell(Gone(1))
    meeting.grant(1)
    assert EndRow("start_timeout") in meeting.wait(30)


def test_h1_no_bound_while_a_person_confirms_and_the_other_nodes_are_told(meeting):
    meeting.write(local_confirm=True)
    assert meeting.pair() == [Join(1, 1, 2, "token"), TellPaired()]
    assert meeting.deadline is None


def test_h1_the_other_nodes_are_told_only_of_an_opening_session(meeting):
    meeting.write(local_confirm=True)
    assert meeting.running(SessionState.DETACHED).pair() == [Join(1, 1, 2, "token")]


def test_n1a_a_pair_made_on_the_earlier_decision_is_recorded_when_the_database_is_back(meeting):
    meeting.running().device(1)
    meeting.tell(DatabaseLost())
    meeting.host(2)
    assert meeting.tell(Checked(1, "stale", token="token")) == [Join(1, 1, 2, "token")]
    assert meeting.tell(DatabaseBack()) == [Check(1, 1, 2, 1)]
    assert meeting.grant(1) == []
    assert meeting.state.phase == Paired(1, "made")


def test_n1a_a_refusal_of_that_record_closes_both(meeting):
    meeting.running().device(1)
    meeting.tell(DatabaseLost())
    meeting.host(2)
    meeting.tell(Checked(1, "stale", token="token"))
    meeting.tell(DatabaseBack())
    effects = meeting.tell(Checked(1, "denied", meeting.row))
    assert [effect.conn for effect in effects if isinstance(effect, Close)] == [1, 2]


def test_n1a_a_record_that_fails_is_made_at_the_next_return(meeting):
    meeting.running().device(1)
    meeting.host(2)
    meeting.tell(Checked(1, "stale", token="token"))
    meeting.tell(DatabaseBack())
    meeting.tell(Checked(1, "unavailable"))
    assert meeting.tell(DatabaseBack()) == [Check(1, 1, 2, 1)]


def test_n1a_an_opening_session_is_never_paired_without_the_database(meeting):
    meeting.device(1)
    meeting.host(2)
    assert meeting.tell(Checked(1, "stale", token="token")) == [Close(1, CloseCode.BUSY, "busy")]


def test_e4b_a_detached_that_failed_is_repeated_when_the_database_is_back(meeting):
    meeting.running().pair()
    meeting.tell(Gone(1))
    meeting.tell(WriteFailed(6))
    assert meeting.tell(DatabaseBack()) == [WriteDetached(6)]
    assert meeting.tell(DatabaseBack()) == []


def test_e4b_of_two_that_failed_the_later_pairing_is_repeated(meeting):
    meeting.tell(WriteFailed(6))
    meeting.tell(WriteFailed(5))
    assert not meeting.idle
    assert meeting.tell(DatabaseBack()) == [WriteDetached(6)]
    assert meeting.idle


@pytest.mark.parametrize("moved", [{"paired_seq": 7}, {"state": SessionState.DETACHED}, {"state": SessionState.CLOSED}])
def test_e4b_a_detached_that_failed_is_dropped_when_the_row_moved_on(meeting, moved):
    meeting.running().pair()
    meeting.tell(Gone(1))
    meeting.tell(Gone(2))
    meeting.tell(WriteFailed(6))
    meeting.tell(RowChanged(meeting.write(**moved)))
    assert meeting.tell(DatabaseBack()) == []
    assert meeting.idle


def test_e4b_a_detached_that_failed_is_dropped_when_the_sides_meet_again(meeting):
    meeting.running().pair()
    meeting.tell(Gone(1))
    meeting.tell(Readied(2))
    meeting.tell(WriteFailed(6))
    meeting.device(3)
    meeting.tell(Checked(2, "stale", token="token"))
    assert meeting.tell(DatabaseBack()) == [Check(2, 3, 2, 1)]


def test_e4b_a_detached_that_fails_after_the_sides_met_again_is_not_owed(meeting):
    meeting.running().pair()
    meeting.tell(Gone(1))
    meeting.tell(Readied(2))
    meeting.device(3)
    meeting.tell(Checked(2, "stale", token="token"))
    meeting.tell(WriteFailed(6))
    assert meeting.tell(DatabaseBack()) == [Check(2, 3, 2, 1)]


def test_n2_a_draining_node_still_pairs_and_still_refuses(meeting):
    meeting.tell(Drain())
    meeting.device(1)
    meeting.host(2)
    assert meeting.grant(1) == [Join(1, 1, 2, "token")]
    assert meeting.deadline is None
