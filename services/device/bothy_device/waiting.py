"""Input that waits for the host: when the keyboard is read, when to ping, and what the status line says. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from bothy_device.events import Effect, Read, Status

WAITING_AFTER = 2.0
"""Seconds after which waiting input, or a host that does not answer, is told to the person."""
PING_AFTER = 1.0
"""Seconds after which input without an acknowledgement is followed by a PING."""
STATUS_EVERY = 1.0
"""Seconds between two status lines that differ in a number only."""


@dataclass(frozen=True, slots=True)
class Limits:
    """See ``settings.py``: ``device.paste_bytes``, ``device.input_buffer_bytes``, ``channel.fail_grace``."""

    paste_bytes: int
    input_buffer_bytes: int
    fail_grace: float


class Waiting:
    """Watched after every event of a session."""

    def __init__(self, limits: Limits, *, piped: bool, escape: str, now: float) -> None:
        """``piped``: no person types; ``escape`` is the escape character that the words name, empty for none."""
        self._limits = limits
        self._piped = piped
        self._escape = escape
        self._reading = True
        self._since: float | None = None
        self._ping_at: float | None = None
        self._status: tuple[str, str] | None = None
        self._status_next = now
        self._status_at: float | None = None

    def deadline(self) -> float | None:
        """When to look again though nothing happened."""
        return min((each for each in (self._ping_at, self._status_at) if each is not None), default=None)

    def ping_due(self, now: float) -> bool:
        """Whether the host should be asked for a sign of life; true once for each wait."""
        due = self._ping_at is not None and now >= self._ping_at
        if due:
            self._ping_at = None
        return due

    def watch(self, pending: int, *, connected: bool, outage: tuple[str, str] | None, now: float) -> list[Effect]:
        """``pending`` bytes are typed and not with the host; ``connected`` says that the channel is open.

        ``outage`` is what an outage has to say, which comes first: the kind of status and its words.
        """
        if not pending or not connected:
            self._since = self._ping_at = None
        elif self._since is None:
            self._since, self._ping_at = now, now + PING_AFTER
        gate = self._gate(pending, connected=connected)
        return gate + self._show(outage or self._line(pending, now), now)

    def again(self) -> list[Effect]:
        """The status that stands, for a screen that was cleared."""
        return [Status(self._status[1])] if self._status else []

    def _gate(self, pending: int, *, connected: bool) -> list[Effect]:
        """A person's keys are always read, so that escapes work, except behind a paste that is too large."""
        limit = self._limits.paste_bytes if connected else self._limits.input_buffer_bytes
        if not connected and not self._piped:
            reading = True
        elif self._reading:
            reading = pending < limit
        else:
            reading = pending <= limit * 0.9
        changed = reading is not self._reading
        self._reading = reading
        return [Read(reading)] if changed else []

    def _line(self, pending: int, now: float) -> tuple[str, str] | None:
        if self._piped or self._since is None or now < self._since + WAITING_AFTER:
            return None
        if not self._reading:
            return "full", f"{pending} bytes waiting; keys are read again when a tenth is through"
        drops = f", {self._escape}D drops them" if self._escape else ""
        return "waiting", f"{pending} bytes waiting{drops}"

    def _show(self, status: tuple[str, str] | None, now: float) -> list[Effect]:
        """A new kind of status is shown at once, new numbers now and then."""
        self._status_at = None
        if status == self._status:
            if status is None and self._since is not None and not self._piped:
                self._status_at = self._since + WAITING_AFTER
            return []
        if status and self._status and status[0] == self._status[0] and now < self._status_next:
            self._status_at = self._status_next
            return []
        self._status, self._status_next = status, now + STATUS_EVERY
        return [Status(status[1] if status else None)]
