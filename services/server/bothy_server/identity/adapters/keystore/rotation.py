"""What each signing key is for at an instant: rules over keys, no files (``docs/spec/protocol.md``, Signing keys).

A key is *next* until ``signs_from``, then it *signs* until a newer one does, *verifies* from then on, and is *retired* from
``retired_at`` on, when the last token that it signed has died.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


@dataclass(frozen=True, slots=True)
class SigningKey:
    """One Ed25519 key. ``kid`` is its thumbprint. ``retired_at`` is set when it may sign no more; it verifies until then."""

    kid: str
    key: Ed25519PrivateKey = field(compare=False, repr=False)
    created_at: datetime
    signs_from: datetime
    retired_at: datetime | None = None

    @property
    def public(self) -> bytes:
        """The raw public key."""
        return self.key.public_key().public_bytes_raw()

    def is_due(self, now: datetime) -> bool:
        """Its time to sign has come, and has not been ended."""
        return self.retired_at is None and self.signs_from <= now

    def verifies(self, now: datetime) -> bool:
        """Whether tokens of it are taken, so that it is published."""
        return self.retired_at is None or now < self.retired_at


class KeyState(StrEnum):
    """Of a key, by the times in its file."""

    NEXT = "next"
    SIGNS = "signs"
    VERIFIES = "verifies"
    RETIRED = "retired"


class CannotRetireError(Exception):
    """The key is needed; the message says for what, and what to do."""


def state_of(key: SigningKey, keys: Iterable[SigningKey], now: datetime) -> KeyState:
    """What ``key`` is for among ``keys``, where every node holds all of them in time."""
    if not key.verifies(now):
        return KeyState.RETIRED
    if key.signs_from > now and key.retired_at is None:
        return KeyState.NEXT
    newest = max((each for each in keys if each.is_due(now)), key=_rank, default=None)
    return KeyState.SIGNS if key == newest else KeyState.VERIFIES


def signing_key(
    keys: Iterable[SigningKey],
    now: datetime,
    *,
    lacking: Collection[str],
    published_s: Mapping[str, float],
    lead: float,
) -> SigningKey | None:
    """The key that this node signs with; None when all are retired.

    The newest that is due, has been published here for ``lead`` seconds (``published_s``: for how long by now), and that no
    other node is ``lacking``; so a key that came late, or is not everywhere yet, leaves the older one in its place. Where
    none fulfils all of that, as on a new machine or after the only older key was retired at once, the nearest to it signs:
    a relay without a key lets nobody in.
    """
    may = [each for each in keys if each.retired_at is None]
    return max(
        [each for each in may if each.is_due(now)] or may,
        key=lambda each: (each.kid not in lacking, min(published_s[each.kid], lead), each.signs_from, each.kid),
        default=None,
    )


def check_retirement(kid: str, keys: Collection[SigningKey], now: datetime, lead: timedelta, *, at_once: bool) -> None:
    """Raises :class:`CannotRetireError` while nodes may sign with the key, or, ``at_once``, could not do without it."""
    key = next((each for each in keys if each.kid == kid), None)
    if key is None:
        raise CannotRetireError(f"there is no key {kid}; `bothy-server keys list` shows them")
    if key.retired_at is not None and (not at_once or not key.verifies(now)):
        raise CannotRetireError(f"{kid} is retired already, from {key.retired_at.isoformat(timespec='seconds')} on")
    others = [each for each in keys if each.kid != kid and each.is_due(now)]
    if not others:
        raise CannotRetireError("no other key may sign; make one with `bothy-server keys rotate`, at once with --now")
    if at_once or key.signs_from > now:
        return
    heir = max(others, key=_rank)
    if _rank(heir) < _rank(key):
        raise CannotRetireError("it is the key that signs; `bothy-server keys rotate` makes the next one")
    everywhere = heir.created_at + lead
    if everywhere > now:
        raise CannotRetireError(
            f"{heir.kid} has not been published for secrets.key_publish_lead; try again at"
            f" {everywhere.isoformat(timespec='seconds')}, or, when the key was stolen, with --now"
        )


def _rank(key: SigningKey) -> tuple[datetime, str]:
    return key.signs_from, key.kid
