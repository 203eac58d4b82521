"""The rendezvous: the two sides of a session meet on one node (``docs/spec/rendezvous.md``).

A pure rule. The shell feeds one event at a time to :func:`step`, carries out the effects in their order, keeps one timer
at :func:`deadline` and feeds :class:`Tick` when it fires. Rule numbers in this package are those of
``docs/spec/cluster.md``.
"""

from __future__ import annotations

from bothy_server.terminal.domain.lone_side import SideName
from bothy_server.terminal.domain.rendezvous.effects import (
    Accept,
    Check,
    Close,
    Count,
    Effect,
    Ending,
    EndRow,
    Join,
    Part,
    ReadRow,
    Redial,
    TellPaired,
    WriteDetached,
)
from bothy_server.terminal.domain.rendezvous.events import (
    Arrived,
    Checked,
    DatabaseBack,
    DatabaseLost,
    Drain,
    Event,
    Expected,
    Gone,
    Outcome,
    PairedElsewhere,
    Readied,
    RowChanged,
    RowRead,
    Stalled,
    Tick,
    WriteFailed,
)
from bothy_server.terminal.domain.rendezvous.rule import step
from bothy_server.terminal.domain.rendezvous.state import (
    Checking,
    Expectation,
    Kind,
    Limits,
    Paired,
    Side,
    State,
    Waiting,
    is_idle,
    is_paired,
    sides,
)
from bothy_server.terminal.domain.rendezvous.timers import deadline
from bothy_server.terminal.domain.session import Row

__all__ = [
    "Accept",
    "Arrived",
    "Check",
    "Checked",
    "Checking",
    "Close",
    "Count",
    "DatabaseBack",
    "DatabaseLost",
    "Drain",
    "Effect",
    "EndRow",
    "Ending",
    "Event",
    "Expectation",
    "Expected",
    "Gone",
    "Join",
    "Kind",
    "Limits",
    "Outcome",
    "Paired",
    "PairedElsewhere",
    "Part",
    "ReadRow",
    "Readied",
    "Redial",
    "Row",
    "RowChanged",
    "RowRead",
    "Side",
    "SideName",
    "Stalled",
    "State",
    "TellPaired",
    "Tick",
    "Waiting",
    "WriteDetached",
    "WriteFailed",
    "deadline",
    "is_idle",
    "is_paired",
    "sides",
    "step",
]
