"""A rendezvous in a test's hands: it is told events and answers with effects; time moves where the test says."""

from dataclasses import replace

import pytest

from bothy_server.terminal.domain.rendezvous import (
    Arrived,
    Checked,
    Expected,
    Limits,
    Row,
    RowRead,
    State,
    Tick,
    deadline,
    is_idle,
    step,
)
from bothy_server.terminal.domain.session import SessionState


class Meeting:
    """Time begins at 0; ``row`` is what the database holds as far as this test goes."""

    limits = Limits(open_timeout=20, start_timeout=30, redial_after=0.5, stall_timeout=120)

    def __init__(self):
        self.now = 0.0
        self.state = State()
        self.row = Row(SessionState.OPENING, attach_seq=1)

    def tell(self, event):
        self.state, effects = step(self.state, event, self.now, self.limits)
        return effects

    def write(self, **changes):
        """Change the row in the database; nobody here knows yet."""
        self.row = replace(self.row, **changes)
        return self.row

    def expect(self):
        return self.tell(Expected(self.row))

    def arrive(self, conn, kind, seq=0):
        """A side registers and its read returns at once."""
        self.tell(Arrived(conn, kind, seq))
        return self.tell(RowRead(conn, self.row))

    def device(self, conn=1, seq=1):
        return self.arrive(conn, "device", seq)

    def host(self, conn=2):
        return self.arrive(conn, "host")

    def grant(self, pairing=1):
        """The check's statement writes the row and answers."""
        state = SessionState.ACTIVE if self.row.state is SessionState.DETACHED else self.row.state
        self.write(paired=True, paired_seq=self.row.paired_seq + 1, state=state)
        return self.tell(Checked(pairing, "granted", self.row, self.row.paired_seq, "token"))

    def pair(self):
        """Device 1 and host 2 meet."""
        self.device(1)
        self.host(2)
        return self.grant(1)

    def running(self, state=SessionState.ACTIVE):
        """A session that some node paired and that runs."""
        self.write(state=state, paired=True, paired_seq=5)
        return self

    @property
    def deadline(self):
        return deadline(self.state, self.limits)

    @property
    def idle(self):
        return is_idle(self.state)

    def wait(self, until):
        """Let time pass; the shell's timer fires whenever it is due."""
        effects = []
        while (due := self.deadline) is not None and due <= until:
            self.now = max(self.now, due)
            effects += self.tell(Tick())
        self.now = until
        return effects


@pytest.fixture
def meeting():
    return Meeting()


@pytest.fixture
def new_meeting():
    """For tests with several nodes."""
    return Meeting
