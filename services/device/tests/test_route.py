"""The route of a session: which requests an attach makes, and when it makes none."""

import uuid

import pytest

from bothy_device.clock import steady
from bothy_device.failure import Failure, Unreachable
from bothy_device.rest import Opened
from bothy_device.route import SessionRoute
from bothy_device.settings import Device, Settings


@pytest.fixture
def route(relay, login):
    opened = Opened(
        session_id=relay.session_id,
        host_id=relay.host_id,
        profile="shell",
        session_user="alex",
        stream_path="",
        stream_token="stream-token",
        host_channel_key=relay.host_public,
        expires_in_s=60,
        attach_seq=1,
    )
    return SessionRoute(login, Settings(device=Device(request_timeout=1.0)), opened)


async def test_an_attach_tells_until_when_the_token_lives(relay, route):
    before = steady()
    until = await route.attach(take=False)
    assert before + 60 <= until <= steady() + 60
    assert [path for _, path, _, _ in relay.requests][-2:] == [
        f"/terminal/sessions/{relay.session_id}",
        f"/terminal/sessions/{relay.session_id}/attach",
    ]
    async with route.dial():
        await relay.until_dialled(1)


@pytest.mark.parametrize(
    ("state", "take", "taken"), [("active", False, False), ("active", True, True), ("detached", False, True)]
)
async def test_a_session_of_another_device_is_taken_when_it_is_free_or_a_person_says_so(
    relay, route, state, take, taken
):
    relay.device_of_session, relay.session_state = uuid.uuid4(), state
    if taken:
        await route.attach(take=take)
    else:
        with pytest.raises(Failure) as refused:
            await route.attach(take=take)
        assert refused.value.code == "replaced"
    assert len(relay.requests_of("POST", "/attach")) == taken


async def test_a_session_that_ended_is_not_attached(relay, route):
    relay.session_state, relay.close_reason = "closed", "revoked"
    with pytest.raises(Failure) as refused:
        await route.attach(take=True)
    assert (refused.value.code, relay.requests_of("POST", "/attach")) == ("session_closed", [])
    assert "revoked" in refused.value.message


async def test_another_session_or_another_key_is_never_dialled(relay, route):
    relay.session_id = uuid.uuid4()
    with pytest.raises(Failure, match="another session or another key"):
        await route.attach(take=False)


async def test_a_relay_that_says_nothing_is_out_of_reach(relay, route):
    relay.mute = True
    with pytest.raises(Unreachable, match="does not answer"):
        await route.attach(take=False)
