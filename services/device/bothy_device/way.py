"""The way to the terminal as a session sees it: what broke it, when it is tried again, and how it ends when that is final.

The rule itself is ``reconnect.py``, the words and the keys are in ``outage.py``. No I/O, no clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never
from uuid import UUID

from bothy_device import outage, reconnect, texts
from bothy_device.events import (
    Accepted,
    Attach,
    Attached,
    Closed,
    Dial,
    Effect,
    Leave,
    Refused,
    Say,
    Unreached,
    Woke,
)
from bothy_device.outage import Choice, Kept, Outage
from bothy_device.reconnect import Declined, Phase
from bothy_wire.backoff import Backoff
from bothy_wire.close_codes import CloseCode

Happening = Accepted | Attached | Closed | Unreached | Refused | Woke | Declined


class Way:
    """What :meth:`handle` and the others return is to be done in order; :attr:`end` says that nothing is tried any more."""

    def __init__(
        self,
        state: reconnect.State,
        *,
        backoff: Backoff,
        chance: Callable[[], float],
        session_id: UUID,
        host: str,
        person: bool,
    ) -> None:
        """``state`` dials: the caller obeys that by itself. ``chance`` gives random numbers from 0 up to 1."""
        self._state = state
        self._backoff = backoff
        self._chance = chance
        self._id = session_id
        self._person = person
        self._outage = Outage(host, person=person)
        self._without = Leave(255)
        self.end: Leave | None = None
        """How it ends: the way is lost for good."""

    @property
    def up(self) -> bool:
        """Whether the connection that was dialled stands."""
        return self._state.phase is Phase.UP

    def handle(self, event: Happening, now: float) -> list[Effect]:
        """What happened to the connection, or to the attempt to make one."""
        match event:
            case Accepted():
                return self._go(reconnect.Accepted(), now)
            case Attached(token_until):
                return self._go(reconnect.Attached(token_until), now)
            case Closed(code, reason):
                message = texts.lost(code, reason, self._id, opened=self._state.reached)
                ended = reason if code == CloseCode.SESSION_ENDED else None
                without = Leave(255, message, reason=ended)
                return self._lost(reconnect.Lost(code), self._outage.closed(code), without, now)
            case Declined(code):
                return self._lost(event, outage.DECLINED, Leave(255, texts.refusal(code)), now)
            case Unreached(local, text):
                without = Leave(255 if self._state.reached else 1, text)
                return self._lost(reconnect.Unreached(), outage.NETWORK if local else outage.RELAY, without, now)
            case Refused(code, text, retry_after):
                cause = self._outage.away() if code == "host_unavailable" else outage.REFUSED
                return self._lost(reconnect.Refused(code, retry_after), cause, Leave(255, text), now)
            case Woke():
                message = texts.lost(CloseCode.ABNORMAL, "", self._id, opened=self._state.reached)
                return self._lost(reconnect.Woke(), outage.SLEPT, Leave(255, message), now)
            case _:
                assert_never(event)

    def host_gone(self, now: float) -> None:
        """The relay has no host for us at the moment, or no longer."""
        if self._state.reached:
            self._outage.begin(now, self._outage.away())

    def reached(self, now: float) -> None:
        """The terminal is reached, or reached again."""
        self._go(reconnect.Paired(), now)
        self._outage.end(now)

    def pass_time(self, now: float) -> list[Effect]:
        """The deadline may have come."""
        return self._go(reconnect.Passed(), now)

    def deadline(self, now: float) -> float | None:
        """When to look again though nothing happened."""
        times = (reconnect.deadline(self._state), self._outage.deadline(self._state, now))
        return min((each for each in times if each is not None), default=None)

    def line(self, kept: Kept, now: float) -> tuple[str, str] | None:
        """See :meth:`Outage.line`."""
        return self._outage.line(self._state, kept, now)

    def choice(self, keys: bytes, kept: Kept, now: float) -> Choice:
        """See :meth:`Outage.choice`."""
        return self._outage.choice(keys, self._state, kept, now)

    def try_now(self, now: float) -> list[Effect]:
        """A person does not want to wait, or takes the session back."""
        return self._go(reconnect.Now(), now)

    def give_up(self) -> Leave:
        """A person does not want to go on."""
        if self._state.phase is Phase.REPLACED:
            return self._without
        return Leave(255, texts.goes_on(self._outage.cause, self._id))

    def _lost(self, event: reconnect.Event, cause: str, without: Leave, now: float) -> list[Effect]:
        self._without = without
        if self._state.reached:
            self._outage.begin(now, cause)
        effects = self._go(event, now)
        if self._state.phase is Phase.REPLACED and not self._person:
            self.end = without
        if self._state.phase is Phase.WAITING and self._state.tries == 1 and not self._state.reached:
            effects.append(Say(f"{cause}; trying again"))
        return effects

    def _go(self, event: reconnect.Event, now: float) -> list[Effect]:
        self._state, effect = reconnect.step(self._state, event, now, backoff=self._backoff, chance=self._chance())
        match effect:
            case reconnect.Dial():
                return [Dial()]
            case reconnect.Attach(take):
                return [Attach(take)]
            case reconnect.Stop():
                self.end = self._without
                return []
            case None:
                return []
            case _:
                assert_never(effect)
