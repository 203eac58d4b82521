import pytest

from bothy_server.terminal.domain.rendezvous import (
    Arrived,
    Checked,
    Close,
    Count,
    DatabaseBack,
    DatabaseLost,
    Drain,
    EndRow,
    Gone,
    PairedElsewhere,
    Part,
    Readied,
    ReadRow,
    RowChanged,
    RowRead,
    Tick,
    WriteDetached,
)
from bothy_server.terminal.domain.session import SessionState
from bothy_wire.close_codes import CloseCode


def lone(conn):
    return Close(conn, CloseCode.HOST_UNAVAILABLE, "terminal_host_unavailable")


def test_a_session_nobody_knows_of_waits_for_nothing(meeting):
    assert meeting.deadline is None
    assert meeting.tell(Tick()) == []


def test_e3_an_expectation_without_sides_ends_an_opening_that_never_met(meeting):
    meeting.expect()
    assert meeting.deadline == 20
    assert meeting.wait(20) == [EndRow("open_timeout")]
    assert meeting.idle


def test_e3_an_expectation_of_a_session_that_met_elsewhere_only_forgets(meeting):
    meeting.write(paired=True, paired_seq=1)
    meeting.expect()
    assert meeting.wait(20) == []
    assert meeting.idle


def test_e3_an_expectation_is_dropped_when_the_tail_shows_another_state(meeting):
    meeting.expect()
    meeting.tell(RowChanged(meeting.write(state=SessionState.ACTIVE, paired=True, paired_seq=1)))
    assert meeting.idle


def test_e3_an_expectation_ends_nothing_while_a_side_is_here(meeting):
    meeting.expect()
    meeting.now = 10
    meeting.host()
    assert meeting.deadline == 30


@pytest.mark.parametrize(("local_confirm", "effects"), [(True, []), (False, [EndRow("open_timeout")])])
def test_e3_a_pairing_told_after_the_grant_spares_a_session_that_a_person_confirms(meeting, local_confirm, effects):
    meeting.write(local_confirm=local_confirm)
    meeting.expect()
    meeting.tell(PairedElsewhere())
    assert meeting.wait(20) == effects
    assert meeting.idle


def test_e3_a_pairing_told_before_the_grant_spares_nothing(meeting):
    meeting.write(local_confirm=True)
    meeting.tell(PairedElsewhere())
    meeting.expect()
    assert meeting.wait(20) == [EndRow("open_timeout")]


def test_l1_a_lone_device_side_closes_4102_and_is_counted(meeting):
    meeting.running().device()
    meeting.wait(19.999)
    assert meeting.wait(20) == [Count("client"), lone(1)]
    assert meeting.idle


def test_l2_a_lone_host_side_of_an_opening_session_closes_4102_and_is_counted(meeting):
    meeting.host()
    assert meeting.wait(20) == [Count("host"), EndRow("open_timeout"), lone(2)]
    assert meeting.idle


def test_l2_an_opening_session_that_met_elsewhere_is_not_ended(meeting):
    meeting.write(paired=True, paired_seq=1)
    meeting.host()
    assert meeting.wait(20) == [Count("host"), lone(2)]


def test_l1_a_host_that_is_not_ready_stops_the_count_but_not_the_timer(meeting):
    meeting.running().pair()
    meeting.now = 1
    meeting.tell(Gone(1))
    meeting.tell(RowChanged(meeting.write(state=SessionState.DETACHED)))
    meeting.device(3)
    assert meeting.wait(21) == [lone(3)]


def test_l2_a_device_that_is_not_ready_stops_the_count_but_not_the_timer(meeting):
    meeting.write(local_confirm=True)
    meeting.pair()
    meeting.now = 1
    meeting.tell(Gone(2))
    meeting.host(3)
    assert meeting.wait(21) == [lone(3), WriteDetached(1), lone(1)]


def test_l3_a_lone_device_of_an_opening_session_ends_it(meeting):
    meeting.expect()
    meeting.device()
    assert meeting.wait(20) == [Count("client"), EndRow("open_timeout"), lone(1)]
    assert meeting.idle, "the expectation does not end the row a second time"


@pytest.mark.parametrize("state", [SessionState.ACTIVE, SessionState.DETACHED])
def test_l3_a_running_session_stays_as_it_is(meeting, state):
    meeting.running(state).device()
    assert not any(isinstance(effect, EndRow) for effect in meeting.wait(60))


def test_l4_the_host_side_of_a_detached_session_waits(meeting):
    meeting.running(SessionState.DETACHED).host()
    assert meeting.deadline is None


def test_l4_a_connection_that_was_paired_once_never_counts(meeting):
    meeting.running().pair()
    meeting.tell(Gone(2))
    meeting.tell(Readied(1))
    assert not any(isinstance(effect, Count) for effect in meeting.wait(60))
    assert meeting.idle


def test_l5_one_deadline_until_the_first_pairing(meeting):
    meeting.running().device()
    meeting.now = 10
    meeting.host()
    assert meeting.deadline is None, "while a valid check runs no lone timer runs"
    meeting.tell(Gone(2))
    meeting.tell(Checked(1, "unavailable"))
    assert lone(1) in meeting.wait(20)


def test_l5_a_void_check_does_not_hold_the_deadline(meeting):
    meeting.running().device()
    meeting.host()
    meeting.tell(Gone(2))
    assert lone(1) in meeting.wait(20)


def test_l5_a_device_that_lost_its_host_has_the_unpairing_plus_the_timeout(meeting):
    meeting.running().pair()
    meeting.now = 100
    meeting.tell(Gone(2))
    meeting.tell(Readied(1))
    assert lone(1) not in meeting.wait(119.999)
    assert meeting.wait(120) == [WriteDetached(6), lone(1)]


def test_l5_a_device_with_a_host_here_is_not_lone(meeting):
    meeting.running().pair()
    meeting.tell(Gone(2))
    meeting.host(3)
    assert meeting.wait(60) == []
    assert meeting.state.device.conn == 1


def test_l5_a_host_that_lost_its_device_has_no_deadline(meeting):
    meeting.running(SessionState.DETACHED).pair()
    meeting.tell(Gone(1))
    meeting.tell(Readied(2))
    meeting.tell(RowChanged(meeting.write(state=SessionState.DETACHED)))
    assert meeting.deadline is None


def test_l5_a_paired_host_of_an_opening_session_has_no_deadline_of_its_own(meeting):
    meeting.write(local_confirm=True)
    meeting.pair()
    meeting.tell(Gone(1))
    meeting.tell(Readied(2))
    assert meeting.deadline is None


def test_l6_a_lone_ready_device_asks_twice(meeting):
    meeting.running().device()
    assert meeting.wait(0.5) == [ReadRow(1)]
    assert meeting.wait(9.999) == []
    assert meeting.wait(10) == [ReadRow(1)]
    assert meeting.deadline == 20


def test_l6_a_device_that_is_not_ready_asks_when_it_is(meeting):
    meeting.running().pair()
    meeting.tell(Gone(2))
    assert meeting.wait(3) == []
    meeting.tell(Readied(1))
    assert meeting.wait(3) == [ReadRow(1)]


def test_l6_each_unpairing_asks_anew(meeting):
    meeting.running().device()
    meeting.wait(10)
    meeting.host()
    meeting.grant()
    meeting.tell(Gone(2))
    meeting.tell(Readied(1))
    assert meeting.wait(10.5) == [ReadRow(1)]


def test_l6_no_redial_before_the_session_ever_met(meeting):
    meeting.device()
    assert meeting.deadline == 20


def test_e4b_a_host_alone_on_an_active_row_writes_detached_with_what_it_read(meeting):
    meeting.running().host()
    assert meeting.wait(20) == [WriteDetached(5)]
    assert meeting.deadline is None


def test_e4b_what_a_host_read_at_its_own_identify_is_its_fence_even_when_more_is_known(meeting):
    read = meeting.running().row
    meeting.tell(Arrived(2, "host"))
    meeting.tell(RowChanged(meeting.write(paired_seq=6)))
    meeting.tell(RowRead(2, read))
    assert meeting.wait(20) == [WriteDetached(5)]


def test_e4b_a_host_whose_device_was_replaced_writes_detached_with_its_own_pairing(meeting):
    meeting.running().pair()
    meeting.write(attach_seq=2)
    meeting.expect()
    meeting.tell(Readied(2))
    assert meeting.wait(20) == [WriteDetached(6)]


def test_e4b_it_is_written_anew_after_the_next_pairing(meeting):
    meeting.running().host()
    meeting.wait(20)
    meeting.device(3)
    meeting.grant()
    meeting.write(attach_seq=2)
    meeting.expect()
    assert meeting.wait(40) == [WriteDetached(6)]


@pytest.mark.parametrize(("leaves", "stays"), [(1, 2), (2, 1)])
def test_e5_side_unpaired_without_an_answer_closes_4106(meeting, leaves, stays):
    meeting.running(SessionState.DETACHED).pair()
    meeting.tell(Gone(leaves))
    meeting.arrive(3, "device" if leaves == 1 else "host", 1)
    assert Close(stays, CloseCode.STALLED, "stalled") in meeting.wait(120)


def test_n1_a_lone_side_closes_while_the_database_is_away_but_the_sweep_ends_the_row(meeting):
    meeting.device()
    meeting.tell(DatabaseLost())
    assert meeting.wait(20) == [Count("client"), lone(1)]


def test_n1_an_expectation_and_a_start_leave_the_row_to_the_sweep_while_the_database_is_away(meeting, new_meeting):
    meeting.expect()
    meeting.tell(DatabaseLost())
    assert meeting.wait(20) == []
    assert meeting.idle

    started = new_meeting()
    started.pair()
    started.tell(DatabaseLost())
    assert started.wait(30) == []
    assert started.deadline is None


def test_n1a_a_device_that_lost_its_host_waits_while_the_database_is_away(meeting):
    meeting.running().pair()
    meeting.tell(DatabaseLost())
    meeting.tell(Gone(2))
    meeting.tell(Readied(1))
    for conn in (effect.conn for effect in meeting.wait(60)):
        meeting.tell(RowRead(conn, None, failed=True))
    assert meeting.deadline is None
    meeting.tell(DatabaseBack())
    assert meeting.wait(60.5) == [ReadRow(1)]
    assert lone(1) in meeting.wait(80)


def test_n1a_word_that_the_database_is_back_moves_no_deadline_unless_it_was_away(meeting):
    meeting.running().pair()
    meeting.tell(Gone(2))
    meeting.now = 15
    meeting.tell(DatabaseBack())
    assert meeting.deadline == 20


def test_n1a_a_device_that_never_met_keeps_its_deadline(meeting):
    meeting.device()
    meeting.tell(DatabaseLost())
    meeting.now = 5
    meeting.tell(DatabaseBack())
    assert meeting.deadline == 20


def test_n2_a_draining_node_ends_no_row_and_asks_for_no_dial(meeting, new_meeting):
    meeting.expect()
    meeting.tell(Drain())
    assert meeting.idle

    lonely = new_meeting()
    lonely.device()
    lonely.tell(Drain())
    assert lonely.wait(20) == [Count("client"), lone(1)]

    running = new_meeting().running()
    running.device()
    running.tell(Drain())
    assert running.deadline == 20

    started = new_meeting()
    started.pair()
    started.tell(Drain())
    assert started.wait(60) == []


def test_a_late_tick_fires_everything_that_is_due(meeting):
    meeting.running().device()
    meeting.now = 50
    assert meeting.tell(Tick()) == [ReadRow(1), ReadRow(1), Count("client"), lone(1)]


def test_a_pair_waits_for_nothing(meeting):
    meeting.running().pair()
    assert meeting.deadline is None
    meeting.now = 1000
    assert meeting.tell(Gone(1))[0] == Part(1, stays=2, leaves=1)
