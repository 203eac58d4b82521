"""What the terminal needs from outside: the two sides of a session as links, and a pump between them.

A *link* is one accepted stream or data socket after identify. The data plane behind these ports streams bytes and knows
no rule; rules know no bytes (``docs/architecture.md``, Data plane).
"""

from __future__ import annotations

from typing import Protocol


class SideLink(Protocol):
    """One side of a session as the rules see it. No call blocks or raises; after :meth:`SideEvents.gone` all do nothing."""

    def send_text(self, text: str) -> None:
        """Send one control frame at the next border of the outgoing stream, before anything forwarded later."""

    def close(self, code: int, reason: str = "") -> None:
        """Write what is queued, then the close frame; abort after ``terminal.close_linger``."""

    def abort(self) -> None:
        """Drop the connection now."""

    def discard(self, on: bool) -> None:
        """*unpaired* while on: binary is read and dropped by its headers, one text message is taken."""


class SideEvents(Protocol):
    """What a link tells its owner. Called on the loop, never re-entrantly from within a call of the owner to the link."""

    def text(self, link: SideLink, payload: bytes) -> None:
        """One complete text message arrived (only while unpaired; elsewhere it is a violation that the link answers)."""

    def gone(self, link: SideLink, code: int) -> None:
        """The connection ended, for whatever cause: the peer's close code, our own, or 1006. Exactly once."""

    def stalled(self, link: SideLink) -> None:
        """The peer took nothing of what is queued for ``terminal.stall_timeout``."""


class Pump(Protocol):
    """Joins two links so that binary messages pass byte for byte, with back-pressure, in both directions."""

    def join(self, one: SideLink, other: SideLink) -> None:
        """From now on each forwards to the other. Text sent before is written before the first forwarded byte."""

    def part(self, one: SideLink, other: SideLink) -> None:
        """Stop forwarding. An unfinished message on a side that stays is filled up, then later text may follow."""
