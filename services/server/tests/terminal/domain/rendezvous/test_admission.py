from bothy_server.terminal.domain.rendezvous import (
    Accept,
    Arrived,
    Check,
    Close,
    Drain,
    Expected,
    Gone,
    Part,
    ReadRow,
    Redial,
    RowChanged,
    RowRead,
)
from bothy_server.terminal.domain.session import SessionState
from bothy_wire.close_codes import CloseCode

REPLACED = Close(1, CloseCode.REPLACED, "replaced")


def test_e1_session_open_closes_an_older_device_side(meeting):
    meeting.device(1, seq=1)
    meeting.write(attach_seq=2)
    assert meeting.expect() == [REPLACED]


def test_e1_session_open_leaves_an_equal_device_side(meeting):
    meeting.device(1, seq=1)
    assert meeting.expect() == []
    assert meeting.state.device.conn == 1


def test_e1_an_older_device_side_is_closed_even_when_it_arrives_late(meeting):
    meeting.write(attach_seq=2)
    assert meeting.device(1, seq=1) == [REPLACED]


def test_e1_the_tail_closes_an_older_device_side_too(meeting):
    meeting.device(1, seq=1)
    assert meeting.tell(RowChanged(meeting.write(attach_seq=2))) == [REPLACED]


def test_e1_a_second_device_side_with_an_equal_value_replaces_the_first(meeting):
    meeting.device(1)
    assert meeting.device(2) == [REPLACED, Accept(2)]


def test_e1_session_open_never_closes_a_host_side(meeting):
    meeting.host(1)
    meeting.write(attach_seq=7)
    assert meeting.expect() == []
    assert meeting.state.host.conn == 1


def test_e1_a_superseded_pair_parts_and_its_device_writes_nothing(meeting):
    meeting.pair()
    meeting.write(attach_seq=2)
    assert meeting.expect() == [Part(1, stays=2, leaves=1), REPLACED]


def test_e2_a_side_that_comes_before_the_signal_is_let_in(meeting):
    assert meeting.tell(Arrived(1, "device", 1)) == [ReadRow(1)]
    assert meeting.tell(RowRead(1, meeting.row)) == [Accept(1)]


def test_e2_an_unknown_or_foreign_session_is_refused(meeting):
    meeting.tell(Arrived(1, "host"))
    assert meeting.tell(RowRead(1, None)) == [Close(1, CloseCode.IDENTIFY_REFUSED, "identify_refused")]
    assert meeting.idle


def test_e2_a_closed_session_is_refused_with_its_reason(meeting):
    meeting.write(state=SessionState.CLOSED, close_reason="idle")
    assert meeting.device() == [Close(1, CloseCode.SESSION_ENDED, "idle")]
    assert meeting.idle


def test_e2_a_read_that_fails_closes_1013(meeting):
    meeting.tell(Arrived(1, "device", 1))
    assert meeting.tell(RowRead(1, None, failed=True)) == [Close(1, CloseCode.BUSY, "busy")]


def test_e2a_a_side_is_registered_before_its_row_is_read(meeting):
    meeting.tell(Arrived(1, "device", 1))
    closed = meeting.write(state=SessionState.CLOSED, close_reason="closed_by_owner")
    assert meeting.tell(RowChanged(closed)) == [Close(1, CloseCode.SESSION_ENDED, "closed_by_owner")]
    assert meeting.tell(RowRead(1, closed)) == []


def test_e2a_a_side_that_left_during_its_read_is_not_let_in(meeting):
    meeting.tell(Arrived(1, "device", 1))
    meeting.tell(Gone(1))
    assert meeting.idle
    assert meeting.tell(RowRead(1, meeting.row)) == []
    assert meeting.idle


def test_e2a_a_session_known_to_be_closed_admits_nobody(meeting):
    meeting.tell(RowChanged(meeting.write(state=SessionState.CLOSED, close_reason="client_closed")))
    assert meeting.tell(Arrived(1, "host")) == [ReadRow(1), Close(1, CloseCode.SESSION_ENDED, "client_closed")]


def test_e4a_later_registration_wins(meeting):
    meeting.tell(Arrived(1, "host"))
    meeting.tell(Arrived(2, "host"))
    assert meeting.tell(RowRead(1, meeting.row)) == [Accept(1)]
    assert meeting.tell(RowRead(2, meeting.row)) == [Close(1, CloseCode.NORMAL, "normal"), Accept(2)]


def test_e4a_later_registration_wins_when_its_read_returns_first(meeting):
    meeting.tell(Arrived(1, "host"))
    meeting.tell(Arrived(2, "host"))
    assert meeting.tell(RowRead(2, meeting.row)) == [Accept(2)]
    assert meeting.tell(RowRead(1, meeting.row)) == [Close(1, CloseCode.NORMAL, "normal")]
    assert meeting.state.host.conn == 2


def test_e4a_of_two_devices_the_later_registration_wins_when_its_read_returns_first(meeting):
    meeting.tell(Arrived(1, "device", 1))
    meeting.tell(Arrived(2, "device", 1))
    meeting.tell(RowRead(2, meeting.row))
    assert meeting.tell(RowRead(1, meeting.row)) == [REPLACED]


def test_e4a_a_newer_attach_wins_over_a_later_registration(meeting):
    old = meeting.row
    meeting.tell(Arrived(1, "device", 2))
    meeting.tell(Arrived(2, "device", 1))
    meeting.tell(RowRead(2, old))
    effects = meeting.tell(RowRead(1, meeting.write(attach_seq=2)))
    assert effects == [Close(2, CloseCode.REPLACED, "replaced"), Accept(1)]


def test_e4a_a_newer_side_of_a_pair_unpairs_the_other(meeting):
    meeting.pair()
    effects = meeting.host(3)
    assert effects == [Part(1, stays=1, leaves=2), Close(2, CloseCode.NORMAL, "normal"), Accept(3)]


def test_e4a_a_counterpart_that_was_only_checked_stays_ready(meeting):
    meeting.device(1)
    meeting.host(2)
    meeting.tell(Gone(2))
    assert meeting.state.device.ready


def test_e3_a_doubled_signal_moves_no_deadline(meeting):
    meeting.expect()
    meeting.now = 5
    meeting.expect()
    assert meeting.deadline == 20


def test_e3_a_newer_attach_is_a_grant_of_its_own(meeting):
    meeting.expect()
    meeting.now = 5
    meeting.write(attach_seq=2)
    meeting.expect()
    assert meeting.deadline == 25


def test_e3_a_running_session_leaves_no_expectation(meeting):
    meeting.running().expect()
    assert meeting.idle


def test_e3_a_late_signal_of_an_opening_session_that_runs_by_now_leaves_no_expectation(meeting):
    late = Expected(meeting.row)
    meeting.running().host()
    meeting.tell(late)
    assert meeting.state.expectation is None


def test_n2_a_draining_node_registers_no_expectation(meeting):
    meeting.tell(Drain())
    meeting.expect()
    assert meeting.idle


def test_l6_the_redial_wants_a_fresh_read(meeting):
    meeting.running().device()
    assert meeting.wait(0.5) == [ReadRow(1)]
    assert meeting.tell(RowRead(1, meeting.row)) == [Redial()]


def test_l6_no_redial_for_a_device_that_the_row_no_longer_names(meeting):
    meeting.running().device()
    meeting.wait(0.5)
    assert meeting.tell(RowRead(1, meeting.write(attach_seq=2))) == [REPLACED]


def test_l6_no_redial_when_the_session_has_ended(meeting):
    meeting.running().device()
    meeting.wait(0.5)
    ended = meeting.write(state=SessionState.CLOSED, close_reason="idle")
    assert meeting.tell(RowRead(1, ended)) == [Close(1, CloseCode.SESSION_ENDED, "idle")]


def test_l6_no_redial_when_the_read_failed(meeting):
    meeting.running().device()
    meeting.wait(0.5)
    assert meeting.tell(RowRead(1, None, failed=True)) == []


def test_l6_no_redial_when_the_host_came_during_the_read(meeting):
    meeting.running().device()
    meeting.wait(0.5)
    assert meeting.host(2) == [Accept(2), Check(1, 1, 2, 1)]
    assert meeting.tell(RowRead(1, meeting.row)) == []


def test_l6_no_redial_for_a_device_that_left_during_the_read(meeting):
    meeting.running().device()
    meeting.wait(0.5)
    meeting.tell(Gone(1))
    assert meeting.tell(RowRead(1, meeting.row)) == []


def test_n2_no_redial_once_the_drain_began_during_the_read(meeting):
    meeting.running().device()
    meeting.wait(0.5)
    meeting.tell(Drain())
    assert meeting.tell(RowRead(1, meeting.row)) == []
