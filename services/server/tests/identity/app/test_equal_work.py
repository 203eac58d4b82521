"""What is unknown and what is wrong costs the same: the same statements and as many signatures, so that no clock tells them apart.

Counted, not timed: a time would only show what this machine had to do besides.
"""

from uuid import UUID

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from bothy_kit.cluster import ORIGIN, settings
from bothy_kit.rows import Keys
from bothy_server import limits
from bothy_server.hosts.app.control_links import ControlLinks
from bothy_server.hosts.app.pairing import Pairing, PairingLimits
from bothy_server.identity.app.attempts import Attempts
from bothy_server.identity.app.login import Login, NewDevice
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.rates import Rate
from bothy_server.terminal.app.host_sessions import HostSessions
from bothy_wire import signing
from bothy_wire.codes import code_hash
from bothy_wire.signing import Purpose

NOBODY = UUID(int=1)
ORIGINS = [ORIGIN, "https://second.example.com"]
UNKNOWN_CODE = "00000-00000-00000-00000-0000"


@pytest.fixture
def work(monkeypatch):
    """The statements that were sent, and a word for each signature that was checked."""
    done = []
    check = signing.verify

    def counted(*args):
        done.append("signature")
        return check(*args)

    def noted(_connection, _cursor, statement, *_):
        done.append(statement)

    monkeypatch.setattr(signing, "verify", counted)
    event.listen(Engine, "before_cursor_execute", noted)
    yield done
    event.remove(Engine, "before_cursor_execute", noted)


@pytest.fixture
def attempts(rows):
    return Attempts(rows.uow, Rate(2, 3600))


@pytest.fixture
def login(rows, tokens, clock, shared_database_url, tmp_path):
    return Login(rows.uow, tokens, clock, ORIGINS, limits.login(settings(shared_database_url, tmp_path)))


async def worked(work, attempts, kind, subject, wrong, attempt):
    """What an attempt did until it was refused, its count included."""
    work.clear()
    with pytest.raises(Problem) as raised:
        async with attempts.guarding(kind, subject, wrong=wrong):
            await attempt()
    assert raised.value.code in {wrong, "rate_limited"}
    return list(work), raised.value.code


def differing(done):
    """The attempts that did something else than the first."""
    first, *others = done
    assert "signature" in first[0]
    assert len(first[0]) > 3
    return [each for each in others if each != first]


@pytest.mark.parametrize("too_many", [False, True])
async def test_an_unknown_device_and_a_wrong_signature_are_the_same_work(login, rows, work, attempts, too_many):
    device, other = await rows.device(), await rows.device()
    asked = []
    for device_id in (device.id, NOBODY):
        work.clear()
        challenge, _ = await login.challenge(device_id)
        asked.append((list(work), challenge))
    assert asked[0][0] == asked[1][0], "a challenge is made the same way for both"
    own, unknown = (challenge for _, challenge in asked)
    foreign = other.keys.sign(Purpose.DEVICE_LOGIN, own, str(device.id))
    tries = [(device.id, own, foreign), (device.id, bytes(32), foreign), (NOBODY, unknown, foreign)]
    done = []
    for device_id, challenge, signature in tries:
        for _ in range(2 if too_many else 0):
            await worked(work, attempts, "login", device_id, "login_refused", lambda: login.token(NOBODY, b"", b""))
        if not too_many:
            await rows.run("DELETE FROM attempts")

        async def attempt(device_id=device_id, challenge=challenge, signature=signature):
            await login.token(device_id, challenge, signature)

        done.append(await worked(work, attempts, "login", device_id, "login_refused", attempt))
        await rows.run("DELETE FROM attempts")
    assert differing(done) == []
    assert done[0][1] == ("rate_limited" if too_many else "login_refused")


async def test_an_invite_that_is_unknown_and_one_that_was_used_are_the_same_work(login, rows, work, attempts):
    person_id, used = await rows.person(), "11111-11111-11111-11111-1111"
    await rows.run(
        "INSERT INTO invites (id, person_id, code_hash, expires_at, used_at) VALUES (:id, :who, :hash, now(), now())",
        id=rows.new_id(),
        who=person_id,
        hash=code_hash(used),
    )
    done = []
    for code in (used, UNKNOWN_CODE):
        keys = Keys()
        signature = keys.sign(Purpose.INVITE_REDEEM, code_hash(code), *keys.public, "laptop")
        new = NewDevice(code, "laptop", *keys.public, signature)
        done.append(await worked(work, attempts, "code", code, "invite_invalid", lambda new=new: login.redeem(new)))
    assert differing(done) == []


async def test_a_pairing_code_that_is_unknown_and_one_that_was_used_are_the_same_work(
    rows, tokens, clock, work, attempts
):
    host_sessions = HostSessions(rows.uow, ControlLinks())
    pairing = Pairing(rows.uow, tokens, clock, ORIGINS, host_sessions, PairingLimits(900, "confirm"))
    host_id = await rows.unpaired_host(await rows.device())
    used, _ = await pairing.issue_code(host_id, None)
    await rows.run("UPDATE pairing_codes SET used_at = now() WHERE host_id = :id", id=host_id)
    done = []
    for code in (used, UNKNOWN_CODE):
        keys = Keys()
        proof = (*keys.public, keys.sign(Purpose.HOST_PAIR, code_hash(code), *keys.public))

        async def attempt(code=code, proof=proof):
            await pairing.pair(code, *proof)

        done.append(await worked(work, attempts, "code", code, "pairing_code_invalid", attempt))
    assert differing(done) == []
