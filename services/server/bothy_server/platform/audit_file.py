"""A copy of the audit log as JSON lines that proves itself: a head, a line for each row with its hash, a foot.

The head names the row before the first one, so that a part of the log can be checked too. The foot tells how many rows there
are: a file without one was cut. Whoever keeps the last hash elsewhere notices a file that was computed anew.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta, structs

from bothy_server.platform.audit_chain import AuditRow, Chain, ChainReport
from bothy_wire.strict_json import StrictDecoder

Hash = Annotated[str, Meta(pattern="^([0-9a-f]{64})?$")]


class AuditFileError(Exception):
    """This is no whole copy of an audit log; the message says what is wrong where."""


class _Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="line", tag="head"):
    after: Annotated[int, Meta(ge=0)]
    hash: Hash


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="line", tag="row"):
    position: int
    at: Annotated[datetime, Meta(tz=True)]
    action: str
    code: str
    hash: Hash
    person_id: UUID | None = None
    device_id: UUID | None = None
    host_id: UUID | None = None
    session_id: UUID | None = None
    subject_person_id: UUID | None = None
    subject_device_id: UUID | None = None


class _Foot(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="line", tag="foot"):
    rows: int
    hash: Hash


_encode = msgspec.json.Encoder().encode
_decode = StrictDecoder(_Head | _Row | _Foot).decode


async def exported(rows: AsyncIterable[AuditRow], after: int, previous: bytes) -> AsyncIterator[bytes]:
    """The lines of a copy of ``rows``, which come behind position ``after`` with the hash ``previous``."""
    yield _encode(_Head(after, previous.hex())) + b"\n"
    count, last = 0, previous
    async for row in rows:
        count, last = count + 1, row.hash
        yield _encode(_written(row)) + b"\n"
    yield _encode(_Foot(count, last.hex())) + b"\n"


def verify_file(lines: Iterable[bytes], progress: Callable[[int], None], kept_rows: int = 0) -> ChainReport:
    """Check a copy, a line in memory; arguments and answer as of :meth:`~.audit_chain.AuditLog.verify`.

    Raises :class:`AuditFileError` for a file that was cut or is something else.
    """
    numbered = enumerate(lines, 1)
    head = _read(*next(numbered, (1, b"")))
    if not isinstance(head, _Head):
        raise AuditFileError("line 1 is not the head of a copy of an audit log")
    chain = Chain(head.after, bytes.fromhex(head.hash))
    kept = chain.head if chain.rows == kept_rows else None
    for number, line in numbered:
        match _read(number, line):
            case _Row() as row:
                if not chain.follows(_stored(row)):
                    return ChainReport(chain.rows, chain.head, row.position, kept)
                if chain.rows == kept_rows:
                    kept = chain.head
                progress(chain.rows)
            case _Foot(rows, hash_):
                if (rows, hash_) != (chain.rows - head.after, chain.head.hex()):
                    raise AuditFileError(f"line {number} tells of {rows} rows, and they are not those before it")
                if next(numbered, None) is not None:
                    raise AuditFileError(f"something stands behind line {number}, the foot")
                return ChainReport(chain.rows, chain.head, None, kept)
            case _:
                raise AuditFileError(f"line {number} is a second head")
    raise AuditFileError(f"the file was cut: it ends behind position {chain.rows} without a foot")


def _read(number: int, line: bytes) -> _Head | _Row | _Foot:
    try:
        found: _Head | _Row | _Foot = _decode(line)
    except ValueError as error:
        raise AuditFileError(f"line {number} is not of a copy of an audit log: {error}") from error
    return found


def _written(row: AuditRow) -> _Row:
    return _Row(**structs.asdict(row) | {"hash": row.hash.hex()})


def _stored(row: _Row) -> AuditRow:
    return AuditRow(**structs.asdict(row) | {"hash": bytes.fromhex(row.hash)})
