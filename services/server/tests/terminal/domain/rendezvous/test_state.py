from bothy_server.terminal.domain.rendezvous import Arrived, Gone, State, is_idle, is_paired, sides


def test_a_rendezvous_begins_idle():
    assert is_idle(State())
    assert is_idle(State(away=True, draining=True))


def test_a_side_under_read_keeps_it(meeting):
    meeting.tell(Arrived(1, "host"))
    assert not meeting.idle
    assert [side.conn for side in sides(meeting.state)] == [1]


def test_an_expectation_keeps_it(meeting):
    meeting.expect()
    assert not meeting.idle


def test_a_check_under_way_keeps_it(meeting):
    meeting.running().device(1)
    meeting.host(2)
    meeting.tell(Gone(1))
    meeting.tell(Gone(2))
    assert not meeting.idle
    meeting.grant()
    assert meeting.idle


def test_a_session_without_sides_is_forgotten(meeting):
    meeting.running().pair()
    assert is_paired(meeting.state)
    meeting.tell(Gone(1))
    assert not is_paired(meeting.state)
    meeting.tell(Gone(2))
    assert meeting.idle
