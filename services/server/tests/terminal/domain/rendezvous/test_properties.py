"""Any order of events that a correct shell can bring: what a simple model of the sockets and the check must see."""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bothy_server.terminal.domain.rendezvous import (
    Accept,
    Arrived,
    Check,
    Checked,
    Close,
    DatabaseBack,
    DatabaseLost,
    Drain,
    EndRow,
    Expected,
    Gone,
    Join,
    Limits,
    PairedElsewhere,
    Part,
    Readied,
    ReadRow,
    Redial,
    Row,
    RowChanged,
    RowRead,
    Stalled,
    State,
    Tick,
    WriteDetached,
    WriteFailed,
    deadline,
    is_idle,
    is_paired,
    sides,
    step,
)
from bothy_server.terminal.domain.session import SessionState
from bothy_wire.close_codes import CloseCode

LIMITS = Limits(open_timeout=20, start_timeout=30, redial_after=0.5, stall_timeout=120)
CLOSED = SessionState.CLOSED


class AnyOrder(RuleBasedStateMachine):
    """``open_conns``: sockets that the shell holds open. ``told``: what the two sides were told of pairings."""

    def __init__(self):
        super().__init__()
        self.now = 0.0
        self.state = State()
        self.history = [Row(SessionState.OPENING, attach_seq=1)]
        self.conns = 0
        self.open_conns = {}
        self.accepted = set()
        self.reads = []
        self.check = None
        self.pair = None
        self.unready = set()
        self.failing = []
        self.drained = False

    @property
    def row(self):
        return self.history[-1]

    def write(self, **changes):
        self.history.append(replace(self.row, **changes))

    def feed(self, event):
        self.state, effects = step(self.state, event, self.now, LIMITS)
        for effect in effects:
            self.perform(effect)

    def perform(self, effect):
        match effect:
            case ReadRow(conn):
                assert conn in self.open_conns
                self.reads.append(conn)
            case Accept(conn):
                assert conn in self.open_conns
                assert conn not in self.accepted
                self.accepted.add(conn)
            case Close(conn, code):
                assert code != CloseCode.PROTOCOL_VIOLATION
                self.gone(conn)
            case Check(pairing, device, host):
                assert self.check is None, "one check at a time"
                assert {device, host} <= self.accepted - self.unready
                self.check = (pairing, device, host)
            case Join(_, device, host):
                assert self.pair is None
                assert {device, host} <= self.accepted - self.unready
                self.pair = {device, host}
            case Part(_, stays, leaves):
                assert self.pair == {stays, leaves}
                self.pair = None
                self.unready.add(stays)
            case WriteDetached(paired_seq):
                assert paired_seq <= self.row.paired_seq
                self.failing.append(paired_seq)
            case EndRow(detail):
                assert detail == "revoked" or not self.drained
            case Redial():
                assert not self.drained
                assert self.row.paired
            case _:
                pass

    def gone(self, conn):
        del self.open_conns[conn]
        self.accepted.discard(conn)
        self.unready.discard(conn)
        if self.pair and conn in self.pair:
            assert self.row.state is CLOSED or self.state.row.state is CLOSED, "a pair parts before a side goes"
            self.pair = None

    # ---- what the world does

    @rule(kind=st.sampled_from(["device", "host"]), behind=st.integers(0, 2))
    def arrive(self, kind, behind):
        self.conns += 1
        self.open_conns[self.conns] = kind
        self.feed(Arrived(self.conns, kind, max(1, self.row.attach_seq - behind) if kind == "device" else 0))

    @precondition(lambda self: self.reads)
    @rule(data=st.data(), how=st.sampled_from(["now", "late", "none", "failed"]))
    def read(self, data, how):
        conn = self.reads.pop(data.draw(st.integers(0, len(self.reads) - 1)))
        match how:
            case "now":
                self.feed(RowRead(conn, self.row))
            case "late":
                self.feed(RowRead(conn, data.draw(st.sampled_from(self.history))))
            case "none":
                self.feed(RowRead(conn, None))
            case "failed":
                self.feed(RowRead(conn, None, failed=True))

    @precondition(lambda self: self.unready)
    @rule(data=st.data())
    def ready(self, data):
        conn = data.draw(st.sampled_from(sorted(self.unready)))
        self.unready.discard(conn)
        self.feed(Readied(conn))

    @precondition(lambda self: self.open_conns)
    @rule(data=st.data(), stalled=st.booleans())
    def leave(self, data, stalled):
        conn = data.draw(st.sampled_from(sorted(self.open_conns)))
        if stalled:
            self.feed(Stalled(conn))
        else:
            self.feed(Gone(conn))
            self.gone(conn)

    @precondition(lambda self: self.check)
    @rule(outcome=st.sampled_from(["granted", "granted", "granted", "stale", "superseded", "denied", "unavailable"]))
    def answer(self, outcome):
        pairing, self.check = self.check[0], None
        if self.row.state is CLOSED and outcome != "unavailable":
            self.feed(Checked(pairing, "closed", self.row))
        elif outcome == "granted":
            detached = self.row.state is SessionState.DETACHED
            state = SessionState.ACTIVE if detached else self.row.state
            self.write(paired=True, paired_seq=self.row.paired_seq + 1, state=state)
            self.feed(Checked(pairing, "granted", self.row, self.row.paired_seq, "token"))
        elif outcome in {"stale", "unavailable"}:
            self.feed(Checked(pairing, outcome, token="token"))
        else:
            self.feed(Checked(pairing, outcome, self.row))

    @precondition(lambda self: self.row.state is not CLOSED)
    @rule(what=st.sampled_from(["attach", "start", "detach", "pair elsewhere", "end", "miss"]))
    def move_the_row(self, what):
        match what:
            case "attach":
                self.write(attach_seq=self.row.attach_seq + 1)
            case "start" if self.row.paired and self.row.state is SessionState.OPENING:
                self.write(state=SessionState.ACTIVE)
            case "detach" if self.row.state is SessionState.ACTIVE:
                self.write(state=SessionState.DETACHED)
            case "pair elsewhere":
                state = SessionState.ACTIVE if self.row.state is SessionState.DETACHED else self.row.state
                self.write(paired=True, paired_seq=self.row.paired_seq + 1, state=state)
            case "end":
                self.write(state=CLOSED, close_reason="idle")
            case "miss" if self.row.never_met:
                self.write(state=CLOSED, close_reason="open_failed", close_detail="open_timeout")
            case _:
                pass

    @rule(data=st.data(), event=st.sampled_from([Expected, RowChanged]))
    def hear_of_the_row(self, data, event):
        self.feed(event(data.draw(st.sampled_from(self.history[-4:]))))

    @rule(event=st.sampled_from([PairedElsewhere, DatabaseLost, DatabaseBack]))
    def hear(self, event):
        self.feed(event())

    @rule()
    def drain(self):
        self.drained = True
        self.feed(Drain())

    @precondition(lambda self: self.failing)
    @rule()
    def fail_to_write(self):
        self.feed(WriteFailed(self.failing.pop()))

    @rule(seconds=st.sampled_from([0.1, 0.5, 10, 20, 120]))
    def wait(self, seconds):
        self.now += seconds
        self.feed(Tick())

    # ---- what holds after every step

    @invariant()
    def the_rule_knows_exactly_the_open_sockets(self):
        known = {side.conn for side in sides(self.state)}
        assert known == set(self.open_conns)
        assert {side.conn for side in self.state.accepted} == self.accepted
        assert {side.conn for side in self.state.accepted if not side.ready} == self.unready

    @invariant()
    def pairs_are_what_was_joined_and_not_parted(self):
        assert is_paired(self.state) == (self.pair is not None)

    @invariant()
    def both_sides_ready_are_never_left_waiting(self):
        here = self.state.accepted
        if len(here) == 2 and all(side.ready for side in here):
            assert self.pair or self.check

    @invariant()
    def a_closed_session_has_no_side(self):
        if self.state.row is not None and self.state.row.state is CLOSED:
            assert not self.open_conns

    @invariant()
    def an_older_device_never_stays(self):
        if self.state.device is not None:
            assert self.state.device.seq >= self.state.row.attach_seq

    @invariant()
    def idle_means_nothing_is_awaited(self):
        if is_idle(self.state):
            assert not self.open_conns
            assert self.check is None
            assert deadline(self.state, LIMITS) is None

    @invariant()
    def what_fired_is_gone(self):
        self.feed(Tick())
        due = deadline(self.state, LIMITS)
        assert due is None or due > self.now


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=100, stateful_step_count=50, deadline=None, derandomize=True)
