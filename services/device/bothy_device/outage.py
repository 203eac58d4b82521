"""What a person sees and decides while the terminal is out of reach: the words of the status line, and two keys. Pure.

The line comes when an outage lasts longer than :data:`SHOWN_AFTER`, and with it two keys that are ours:

- Enter alone: try now. While keys wait it belongs to them too, and is kept like them.
- Ctrl-C alone: drop the keys that wait and were never sent, or give up when there are none.

Everything else is kept for the remote side. Before the line is shown every key is kept: nobody knows of the outage yet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, auto

from bothy_device import texts
from bothy_device.reconnect import Phase, State
from bothy_wire.close_codes import CloseCode, text_of

SHOWN_AFTER = 1.0
"""Seconds that an outage lasts before anybody is bothered with it. No key: most are over by then, and nobody wonders sooner."""
BACK_FOR = 3.0
"""Seconds that the end of an outage stays on the screen. No key: time to read four words."""
_NAME = 18
"""Characters of a host's name, so that the longest line fits on 80 columns."""

# Short: a cause, the next try and both keys fit on a line of 80 columns.
NETWORK = "your network is down"
RELAY = "the relay is out of reach"
REFUSED = "the relay is busy"
DECLINED = "the host refused"
SLEPT = "this machine slept"
_CAUSES = {
    CloseCode.ABNORMAL: "lost the relay",
    CloseCode.INTERNAL: "the relay had an error",
    CloseCode.RESTART: "the relay restarts",
    CloseCode.BUSY: REFUSED,
    CloseCode.SILENT: "the relay fell silent",
    CloseCode.STALLED: "the connection was stuck",
    CloseCode.RATE_LIMITED: "too many attempts",
    CloseCode.IDENTIFY_TIMEOUT: "the relay was too slow",
    CloseCode.CHANNEL_FAILED: "encrypted channel failed",
    CloseCode.TOKEN_EXPIRED: "stream token expired",
}


class Choice(Enum):
    """What a key means during an outage."""

    TRY = auto()
    KEEP_AND_TRY = auto()
    DROP = auto()
    GIVE_UP = auto()
    KEEP = auto()
    REFUSE = auto()


@dataclass(frozen=True, slots=True)
class Kept:
    """Bytes typed that the host has not acknowledged; of these, ``unsent`` never left."""

    waiting: int = 0
    unsent: int = 0


class Outage:
    """From the loss of a terminal that was reached until it is back."""

    def __init__(self, host: str, *, person: bool) -> None:
        """``person``: somebody types and reads; otherwise one line is all."""
        self._host = host[:_NAME]
        self._person = person
        self._since: float | None = None
        self._back: tuple[float, float] | None = None
        self.cause = ""
        """What is broken."""

    def begin(self, now: float, cause: str) -> None:
        """The terminal is out of reach, or still is for another reason."""
        if self._since is None:
            self._since, self._back = now, None
        self.cause = cause

    def end(self, now: float) -> None:
        """The terminal is back."""
        if self._since is not None and now >= self._since + SHOWN_AFTER:
            self._back = now + BACK_FOR, now - self._since
        self._since = None

    def closed(self, code: int) -> str:
        """The cause behind a close code."""
        if code == CloseCode.HOST_UNAVAILABLE:
            return self.away()
        try:
            known = CloseCode(code)
        except ValueError:
            return f"closed with code {code}"
        return _CAUSES.get(known) or text_of(known)

    def away(self) -> str:
        """The cause is the host."""
        return f"{self._host} is away"

    def shown(self, state: State, now: float) -> bool:
        """Whether the line stands there, and its keys count."""
        if state.phase is Phase.REPLACED:
            return True
        return self._since is not None and now >= self._since + SHOWN_AFTER

    def choice(self, keys: bytes, state: State, kept: Kept, now: float) -> Choice:
        """What ``keys``, read at once, mean. A key in the middle of others is text."""
        replaced = state.phase is Phase.REPLACED
        match set(keys):
            case _ if not self._person or not self.shown(state, now):
                return Choice.KEEP
            case pressed if pressed == {0x0D}:
                return Choice.TRY if replaced or not kept.waiting else Choice.KEEP_AND_TRY
            case pressed if pressed == {0x03}:
                return Choice.DROP if kept.unsent and not replaced else Choice.GIVE_UP
            case _:
                return Choice.REFUSE if replaced else Choice.KEEP

    def line(self, state: State, kept: Kept, now: float) -> tuple[str, str] | None:
        """The kind of line, which changes at once, and its words, of which a number may change now and then."""
        if self._back is not None and now < self._back[0]:
            return "back", f"reconnected after {max(1, round(self._back[1]))} s"
        if not self.shown(state, now):
            return None
        if not self._person:
            return "outage", f"{self.cause}; trying to reconnect"
        match state.phase:
            case Phase.REPLACED:
                return "replaced", "continued on another device; Enter takes it back, Ctrl-C leaves"
            case Phase.WAITING:
                kind, doing = "waiting", f"next try in {max(1, math.ceil(state.due - now))} s"
            case Phase.UP:
                kind, doing = "up", "waiting" if self.cause == self.away() else f"waiting for {self._host}"
            case _:
                kind, doing = "trying", "trying now"
        if kept.unsent:
            keys = f"{texts.keys(kept.waiting)} waiting, Ctrl-C drops them"
        elif kept.waiting:
            keys = f"{texts.keys(kept.waiting)} waiting, Ctrl-C gives up"
        elif state.phase is Phase.WAITING:
            keys = "Enter tries now, Ctrl-C gives up"
        else:
            keys = "Ctrl-C gives up"
        return f"{kind} {self.cause} {kept.waiting > 0} {kept.unsent > 0}", f"{self.cause}; {doing}; {keys}"

    def deadline(self, state: State, now: float) -> float | None:
        """When the line changes by itself."""
        if self._back is not None and now < self._back[0]:
            return self._back[0]
        if self._since is None or state.phase is Phase.REPLACED:
            return None
        if now < self._since + SHOWN_AFTER:
            return self._since + SHOWN_AFTER
        left = state.due - now
        if self._person and state.phase is Phase.WAITING and left > 1:
            return state.due - (math.ceil(left) - 1)
        return None
