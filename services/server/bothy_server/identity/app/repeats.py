"""Requests that make something, sent twice: the second is answered from what the first one made.

Inside the unit that makes it, before anything else is locked and before a step-up is spent::

    made = await made_before(unit, caller, repeat)
    if made is not None:
        return ...                                    # built from the row of made.id
    ...
    await remember_made(unit, caller, repeat, Made(id))

A refused request rolls back and leaves nothing: its repeat is tried anew (``docs/spec/protocol.md``, Repeats).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol
from uuid import UUID

from bothy_server.kernel.caller import Caller, RepeatKey
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import Unit

_RUNNING_RETRY_S = 1


@dataclass(frozen=True, slots=True)
class Made:
    """What a request made: the id of its row, and of an open or attach the ``attach_seq`` that it gave."""

    id: UUID
    attach_seq: int | None = None


@dataclass(frozen=True, slots=True)
class Remembered:
    """What is stored of a request that was carried out."""

    request_hash: bytes
    made: Made


class RepeatStore(Protocol):
    """Keys of requests, each with what was made."""

    async def claim(self, caller: Caller, repeat: RepeatKey) -> Remembered | Literal["claimed", "running"]:
        """Hold the key until the unit ends, or say what was made with it.

        Waits a moment for another unit that holds it; ``running`` when that takes longer, and then the unit is lost.
        """

    async def settle(self, caller: Caller, repeat: RepeatKey, made: Made) -> None:
        """Note what was made, for a key that this unit holds."""


async def made_before(unit: Unit, caller: Caller | None, repeat: RepeatKey | None) -> Made | None:
    """What an earlier request with this key made; None when there was none, and then this one may make it.

    The server's own command line, which is no ``caller``, repeats nothing. Raises 422 ``idempotency_mismatch`` when that one asked for something else, 409 ``idempotency_running`` while it runs.
    """
    if caller is None or repeat is None:
        return None
    match await unit.of(RepeatStore).claim(caller, repeat):
        case "claimed":
            return None
        case "running":
            detail = "A request with this Idempotency-Key is still being carried out. Repeat it in a moment."
            raise Problem(409, "idempotency_running", detail, retry_after_s=_RUNNING_RETRY_S)
        case Remembered(request_hash, made):
            if request_hash != repeat.request_hash:
                detail = "This Idempotency-Key was used for another request. Use a new key for each thing to be made."
                raise Problem(422, "idempotency_mismatch", detail)
            return made


async def remember_made(unit: Unit, caller: Caller | None, repeat: RepeatKey | None, made: Made) -> None:
    """Note what this unit made, for repeats of the request."""
    if caller is not None and repeat is not None:
        await unit.of(RepeatStore).settle(caller, repeat, made)
