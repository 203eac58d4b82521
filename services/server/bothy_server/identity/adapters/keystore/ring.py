"""The signing keys that a process holds: which it publishes, which it signs with, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Literal

from bothy_server.identity.adapters.keystore.rotation import SigningKey, signing_key
from bothy_server.identity.adapters.keystore.store import KeyStoreError, file_ages, load_keys
from bothy_server.kernel.clock import Clock


@dataclass(frozen=True, slots=True)
class KeyTrouble:
    """A key that is not as it should be. ``record`` is the constant message of the log, ``words`` are for ``/readyz``."""

    record: Literal[
        "signing key missing",
        "signing key missing elsewhere",
        "signing key retired here alone",
        "signing key file gone",
        "signing key waits",
        "signing key made in the future",
    ]
    kid: str
    words: str = field(compare=False)


class KeyRing:
    """A key once read stays until the process ends: a file that vanished was a mistake, and retiring is said in the file."""

    def __init__(self, directory: Path, clock: Clock, publish_lead: float, leeway: float) -> None:
        """``publish_lead`` and ``leeway`` are in seconds.

        Raises :class:`KeyStoreError` for a directory that is not in order, and when no key in it may sign yet.
        """
        self.directory = directory
        self._clock = clock
        self._lead = publish_lead
        self._leeway = timedelta(seconds=leeway)
        self._keys: dict[str, SigningKey] = {}
        self._on_disk: frozenset[str] = frozenset()
        self._taken: tuple[SigningKey, ...] = ()
        self._published_since: dict[str, float] = {}
        self._elsewhere: Mapping[str, Collection[str]] = {}
        self._others_sign_with: Collection[str] = ()
        found = load_keys(directory)
        if not any(each.is_due(clock.now()) for each in found):
            raise KeyStoreError("no signing key may sign yet; check the clock and `bothy-server keys list`")
        # Whoever ran before, here or on another node of a shared directory, has published what lay here.
        for kid, age in file_ages(directory).items():
            self._published_since[kid] = clock.monotonic() - age
        self.take(found)

    def take(self, found: Collection[SigningKey]) -> bool:
        """What the directory holds now; whether keys came, or changed, or are published no longer.

        Raises :class:`KeyStoreError` when none of them could sign; what is in use stays then.
        """
        if all(each.retired_at is not None for each in found):
            raise KeyStoreError("every signing key is retired; run `bothy-server keys rotate --now`")
        before = self._keys, self._taken
        self._on_disk = frozenset(each.kid for each in found)
        self._keys = self._keys | {each.kid: each for each in found}
        for kid in self._keys:
            self._published_since.setdefault(kid, self._clock.monotonic())
        self._taken = self.published
        return before != (self._keys, self._taken)

    def hear(self, elsewhere: Mapping[str, Collection[str]], signing: Collection[str]) -> None:
        """``elsewhere``: for each other node, by its id, the keys that it publishes; ``signing``: those that they sign with."""
        self._elsewhere = elsewhere
        self._others_sign_with = signing

    @property
    def ids(self) -> tuple[str, ...]:
        """The keys whose tokens are taken at this moment."""
        return tuple(sorted(each.kid for each in self.published))

    @property
    def published(self) -> tuple[SigningKey, ...]:
        """The keys that verify tokens at this moment: a retired one stops by the clock, not when the folder is read again."""
        now = self._clock.now()
        return tuple(each for each in self._keys.values() if each.verifies(now))

    @property
    def signs(self) -> SigningKey:
        """The key that signs now."""
        found = signing_key(
            self._keys.values(),
            self._clock.now(),
            lacking={kid for kid in self._keys for held in self._elsewhere.values() if kid not in held},
            published_s=self._published_s(),
            lead=self._lead,
        )
        assert found is not None  # `take` lets none in that could not sign
        return found

    def of(self, kid: str) -> SigningKey | None:
        """A key by its id, retired or not."""
        return self._keys.get(kid)

    def misses_a_key(self) -> bool:
        """Whether another node has one that this one lacks: it may lie in the directory by now."""
        return any(kid not in self._keys for held in self._elsewhere.values() for kid in held)

    def troubles(self) -> tuple[KeyTrouble, ...]:
        """What somebody should look at. Some pass by themselves, within ``secrets.reload_interval``."""
        return (
            *self._missing(),
            *self._differing(),
            *(
                KeyTrouble(
                    "signing key file gone", kid, f"the file of {kid} is gone; it is held until this process ends"
                )
                for kid in sorted(self._keys.keys() - self._on_disk)
            ),
            *self._waiting(),
        )

    def _missing(self) -> Iterator[KeyTrouble]:
        for kid in sorted(set(self._others_sign_with) - self._keys.keys()):
            yield KeyTrouble("signing key missing", kid, f"another node signs with {kid}")
        for node_id, held in self._elsewhere.items():
            for kid in sorted(set(held) - self._keys.keys() - set(self._others_sign_with)):
                yield KeyTrouble("signing key missing", kid, f"node {node_id} has {kid}, which is not here")

    def _differing(self) -> Iterator[KeyTrouble]:
        own = set(self.ids)
        for node_id, held in self._elsewhere.items():
            for kid in sorted(own - set(held)):
                yield KeyTrouble("signing key missing elsewhere", kid, f"node {node_id} lacks {kid}")
            for kid in sorted(self._keys.keys() & set(held) - own):
                words = f"node {node_id} takes tokens of {kid}, which is retired here"
                yield KeyTrouble("signing key retired here alone", kid, words)

    def _waiting(self) -> Iterator[KeyTrouble]:
        now, signs = self._clock.now(), self.signs
        for each in self._keys.values():
            if each.created_at > now + self._leeway:
                ahead = (each.created_at - now).total_seconds()
                yield KeyTrouble(
                    "signing key made in the future", each.kid, f"{each.kid} was made by a clock {ahead:.0f} s ahead"
                )
            elif each.is_due(now) and (signs.signs_from, signs.kid) < (each.signs_from, each.kid):
                age = self._published_s()[each.kid]
                why = f"published here for {age:.0f} s of {self._lead:.0f} s" if age < self._lead else "not everywhere"
                yield KeyTrouble("signing key waits", each.kid, f"{each.kid} should sign by now and waits: {why}")

    def _published_s(self) -> dict[str, float]:
        now = self._clock.monotonic()
        return {kid: now - since for kid, since in self._published_since.items()}
