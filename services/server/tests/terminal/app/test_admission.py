"""The proof of a side: token, key and server, or a close code."""

import hashlib
from uuid import UUID

import pytest

from bothy_kit.cluster import ORIGIN
from bothy_kit.rows import Keys
from bothy_server.identity.app.api import AccessToken, StreamToken
from bothy_server.kernel.unit import StorageUnavailable
from bothy_server.terminal.app.admission import Admission
from bothy_server.terminal.domain.admission import DeviceIdentity, HostIdentity
from bothy_wire.close_codes import CloseCode
from bothy_wire.frames import DataIdentify, StreamIdentify
from bothy_wire.ids import SessionId
from bothy_wire.signing import Purpose

SESSION, OTHER = SessionId(UUID(int=7 << 64)), SessionId(UUID(int=8 << 64))
NOBODY = UUID(int=1)
CHALLENGE = bytes(range(32))
ELSEWHERE = "https://other.example.com"
FOR_EVER = 1e6


@pytest.fixture
def remembered():
    """Hosts that this node lets in although the database is away, by session."""
    return {}


@pytest.fixture
def admission(rows, tokens, remembered):
    return Admission(rows.uow, tokens, ["https://second.example.com", ORIGIN], remembered.get)


# ---- a device -------------------------------------------------------------------------------------------------------


def stream_token(tokens, device, *, session_id=SESSION, attach_seq=3):
    return tokens.mint(StreamToken(session_id, device.id, attach_seq))[0]


def stream_identify(device, token, *, challenge=CHALLENGE, session_id=SESSION, of=None, origin=ORIGIN, keys=None):
    hashed = hashlib.sha256((of or token).encode()).digest()
    signer = keys or device.keys
    signature = signer.sign(Purpose.STREAM_IDENTIFY, challenge, str(session_id), hashed, origin=origin)
    return StreamIdentify(stream_token=token, signature=signature)


async def test_a_device_proves_its_token_and_its_key(admission, tokens, device):
    frame = stream_identify(device, stream_token(tokens, device))
    for _ in range(2):  # a token may be presented again: each socket has a challenge of its own
        assert await admission.device(SESSION, CHALLENGE, frame) == DeviceIdentity(device.id, 3, device.keys.public[1])


async def test_a_device_that_proves_anything_else_is_refused(admission, rows, tokens, device):
    token, other = stream_token(tokens, device), stream_token(tokens, device, attach_seq=4)
    elsewhere = stream_token(tokens, device, session_id=OTHER)
    thief = await rows.device(device.person_id)
    for bad in (
        stream_identify(device, token, challenge=bytes(32)),
        stream_identify(device, token, session_id=OTHER),
        stream_identify(device, token, of=other),
        stream_identify(device, token, origin=ELSEWHERE),
        stream_identify(device, token, keys=Keys()),
        stream_identify(device, token, keys=thief.keys),
        stream_identify(device, elsewhere),
        stream_identify(device, elsewhere, session_id=OTHER),
        stream_identify(device, "nonsense"),
        stream_identify(device, tokens.mint(AccessToken(device.person_id, device.id))[0]),
    ):
        assert await admission.device(SESSION, CHALLENGE, bad) is CloseCode.IDENTIFY_REFUSED


async def test_a_token_that_is_over_has_its_own_answer(admission, tokens, device, clock):
    frame = stream_identify(device, stream_token(tokens, device))
    clock.advance(FOR_EVER)
    assert await admission.device(SESSION, CHALLENGE, frame) is CloseCode.TOKEN_EXPIRED


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE devices SET revoked_at = now() WHERE id = :id",
        "UPDATE persons SET disabled_at = now() WHERE id = (SELECT person_id FROM devices WHERE id = :id)",
    ],
)
async def test_a_device_that_was_revoked_is_refused(admission, rows, tokens, device, change):
    frame = stream_identify(device, stream_token(tokens, device))
    await rows.run(change, id=device.id)
    assert await admission.device(SESSION, CHALLENGE, frame) is CloseCode.IDENTIFY_REFUSED


async def test_a_device_that_is_not_in_the_database_is_refused(admission, tokens, device):
    token = tokens.mint(StreamToken(SESSION, NOBODY, 1))[0]
    assert await admission.device(SESSION, CHALLENGE, stream_identify(device, token)) is CloseCode.IDENTIFY_REFUSED


# ---- a host ---------------------------------------------------------------------------------------------------------


def data_identify(host, *, challenge=CHALLENGE, session_id=SESSION, pairing_seq=1, origin=ORIGIN, keys=None, **named):
    fields = {"host_id": host.id, "session_id": session_id} | named
    words = (str(fields["host_id"]), str(session_id), str(pairing_seq))
    signature = (keys or host.keys).sign(Purpose.DATA_IDENTIFY, challenge, *words, origin=origin)
    return DataIdentify(signature=signature, **fields)


async def test_a_host_proves_its_key(admission, host):
    assert await admission.host(SESSION, CHALLENGE, data_identify(host)) == HostIdentity(
        host.id, host.keys.public[0], 1
    )


async def test_a_host_that_proves_anything_else_is_refused(admission, rows, host):
    other, unpaired = await rows.host(), await rows.unpaired_host()
    for bad in (
        data_identify(host, challenge=bytes(32)),
        data_identify(host, session_id=OTHER),
        data_identify(host, session_id=OTHER, host_id=host.id),
        data_identify(host, pairing_seq=2),
        data_identify(host, origin=ELSEWHERE),
        data_identify(host, keys=Keys()),
        data_identify(host, keys=other.keys),
        data_identify(host, host_id=other.id),
        data_identify(host, host_id=unpaired),
        data_identify(host, host_id=NOBODY),
    ):
        assert await admission.host(SESSION, CHALLENGE, bad) is CloseCode.IDENTIFY_REFUSED


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("UPDATE hosts SET state = 'disabled' WHERE id = :id", CloseCode.HOST_DISABLED),
        (
            "UPDATE hosts SET state = 'disabled', disabled_reason = 'duplicate_connection' WHERE id = :id",
            CloseCode.DUPLICATE_CONNECTION,
        ),
        ("UPDATE hosts SET state = 'retired' WHERE id = :id", CloseCode.HOST_DISABLED),
        ("UPDATE hosts SET pairing_seq = 2 WHERE id = :id", CloseCode.IDENTIFY_REFUSED),
    ],
)
async def test_a_host_that_may_not_connect_is_told_why_once_it_proved_its_key(admission, rows, host, change, code):
    await rows.run(change, id=host.id)
    assert await admission.host(SESSION, CHALLENGE, data_identify(host)) is code
    assert await admission.host(SESSION, CHALLENGE, data_identify(host, keys=Keys())) is CloseCode.IDENTIFY_REFUSED


async def test_a_database_that_is_away_is_no_refusal(admission, rows, tokens, device, host):
    rows.away = True
    with pytest.raises(StorageUnavailable):
        await admission.device(SESSION, CHALLENGE, stream_identify(device, stream_token(tokens, device)))
    with pytest.raises(StorageUnavailable):
        await admission.host(SESSION, CHALLENGE, data_identify(host))


async def test_a_remembered_host_proves_its_key_to_a_node_without_a_database(admission, rows, remembered, host):
    other = await rows.host()
    identity = remembered[SESSION] = HostIdentity(host.id, host.keys.public[0], 1)
    rows.away = True
    assert await admission.host(SESSION, CHALLENGE, data_identify(host)) == identity
    for bad in (
        data_identify(host, keys=Keys()),
        data_identify(host, pairing_seq=2),
        data_identify(host, challenge=bytes(32)),
        data_identify(other),
        data_identify(host, host_id=other.id),
    ):
        with pytest.raises(StorageUnavailable):
            await admission.host(SESSION, CHALLENGE, bad)
    with pytest.raises(StorageUnavailable):
        await admission.host(OTHER, CHALLENGE, data_identify(host, session_id=OTHER))
