"""Whoever holds a relay's rows and signing keys makes devices, rights, sessions and tokens, as nobody asked for."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import LiteralString

from joserfc import jwt
from joserfc.jwk import OKPKey

from bothy_kit.dishonest_world import ME, TTL_S, DishonestWorld, Machine, stream_of
from bothy_kit.fake_device import FakeDevice, Stream
from bothy_server.identity.adapters.keystore.store import load_keys
from bothy_server.kernel.ids import new_id
from bothy_wire.ids import DeviceId, SessionId
from bothy_wire.signing import thumbprint


class Intruder:
    """The dishonest operator at work."""

    def __init__(self, world: DishonestWorld) -> None:
        self._world = world
        self._key = load_keys(world.folder / "keys")[-1]

    def device(self, host: Machine) -> FakeDevice:
        """A device of its own making, whose person owns the host."""
        device, person_id = FakeDevice(self._world.url, self._world.url), new_id(datetime.now(UTC))
        device.device_id = DeviceId(new_id(datetime.now(UTC)))
        keys = device.signing_key.public_key().public_bytes_raw(), device.channel_key.public_key().public_bytes_raw()
        values = {"person": person_id, "device": device.device_id, "host": host.id, "name": f"ghost {person_id}"}
        self._world.sql("INSERT INTO persons (id, name) VALUES (%(person)s, %(name)s)", **values)
        self._world.sql(
            "INSERT INTO devices (id, person_id, name, kind, signing_key, channel_key)"
            " VALUES (%(device)s, %(person)s, 'ghost', 'cli', %(signing)s, %(channel)s)",
            **values,
            signing=keys[0],
            channel=keys[1],
        )
        self._world.sql("INSERT INTO host_owners (host_id, person_id) VALUES (%(host)s, %(person)s)", **values)
        device.access_token = self._minted("access", "api", sub=str(person_id), device=str(device.device_id))
        return device

    async def opens_by_the_api(self, device: FakeDevice, host: Machine, profile: str = "shell") -> Stream:
        """The node itself opens the session: the step-up that it asks for is a row."""
        step_up_id = new_id(datetime.now(UTC))
        self._world.sql(
            'INSERT INTO step_ups (id, person_id, device_id, purpose, host_id, profile, "session_user", expires_at)'
            " SELECT %(id)s, person_id, id, 'open', %(host)s, %(profile)s, %(user)s, now() + interval '1 hour'"
            " FROM devices WHERE id = %(device)s",
            id=step_up_id,
            device=device.device_id,
            host=host.id,
            profile=profile,
            user=ME,
        )
        body = {"host_id": str(host.id), "profile": profile, "session_user": ME, "step_up_id": str(step_up_id)}
        return stream_of(await device.rest("POST", "/terminal/sessions", body))

    async def opens_by_rows(self, device: FakeDevice, host: Machine, profile: str = "shell") -> Stream:
        """No operation is called: the session is a row, the order to the host a signal, the stream token its own."""
        session_id = SessionId(new_id(datetime.now(UTC)))
        self._world.sql(
            'INSERT INTO terminal_sessions (id, host_id, person_id, device_id, profile, "session_user", expires_at)'
            " SELECT %(id)s, %(host)s, person_id, id, %(profile)s, %(user)s, now() + interval '1 hour'"
            " FROM devices WHERE id = %(device)s",
            id=session_id,
            device=device.device_id,
            host=host.id,
            profile=profile,
            user=ME,
        )
        self.orders(host, session_id)
        return self.stream(device, host, session_id)

    def orders(self, host: Machine, session_id: SessionId) -> None:
        """Make the node send ``host.session.open``."""
        signal = {"kind": "terminal.session_open", "host_id": str(host.id), "session_id": str(session_id)}
        self._world.sql("SELECT pg_notify('ephemeral', %(signal)s)", signal=json.dumps(signal, separators=(",", ":")))

    def takes(self, device: FakeDevice, host: Machine, session_id: SessionId) -> None:
        """Let a session be another device's."""
        self._world.sql(
            "UPDATE terminal_sessions s SET device_id = d.id, person_id = d.person_id, attach_seq = attach_seq + 1"
            " FROM devices d WHERE d.id = %(device)s AND s.id = %(session)s",
            device=device.device_id,
            session=session_id,
        )
        self.orders(host, session_id)

    def begins_again(self, host: Machine, session_id: SessionId) -> None:
        """Let a session that is over be one that never met."""
        self._world.sql(
            "UPDATE terminal_sessions SET state = 'opening', close_reason = NULL, close_detail = NULL, closed_at = NULL,"
            " paired_at = NULL, started_at = NULL, detached_at = NULL, boot_id = NULL WHERE id = %(session)s",
            session=session_id,
        )
        self.orders(host, session_id)

    def stream(self, device: FakeDevice, host: Machine, session_id: SessionId) -> Stream:
        """What an answer of the relay would say."""
        ((key, seq),) = self._world.sql(
            "SELECT h.channel_key, s.attach_seq FROM hosts h, terminal_sessions s"
            " WHERE h.id = %(host)s AND s.id = %(session)s",
            host=host.id,
            session=session_id,
        )
        token = self._minted("stream", "relay", sub=str(session_id), device=str(device.device_id), attach_seq=seq)
        return Stream(session_id, token, key, seq)

    def session_token(self, device: FakeDevice, host: Machine, session_id: SessionId, profile: str = "shell") -> str:
        """A token that the host's check of tokens takes."""
        return self._minted(
            "session",
            "host",
            sub=str(session_id),
            host=str(host.id),
            device=str(device.device_id),
            profile=profile,
            session_user=ME,
            cnf={"jkt": thumbprint(device.channel_key.public_key().public_bytes_raw())},
        )

    def _minted(self, kind: str, audience: str, **claims: object) -> str:
        now = time.time()
        times = {"iat": now, "nbf": now, "exp": now + TTL_S, "jti": secrets.token_hex(16)}
        header = {"alg": "Ed25519", "typ": f"bothy-{kind}+jwt", "kid": self._key.kid}
        key = OKPKey.import_key(self._key.key)
        return jwt.encode(header, {"iss": "bothy", "aud": audience, **times, **claims}, key, algorithms=["Ed25519"])


@contextmanager
def rewriting(world: DishonestWorld, column: LiteralString, value: LiteralString) -> Iterator[None]:
    """While the block runs the database writes another value into each new session."""
    world.sql(
        "CREATE FUNCTION rewrite() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN NEW.{column} := '{value}'; RETURN NEW; END $$"
    )
    world.sql("CREATE TRIGGER rewrite BEFORE INSERT ON terminal_sessions FOR EACH ROW EXECUTE FUNCTION rewrite()")
    try:
        yield
    finally:
        world.sql("DROP FUNCTION rewrite CASCADE")
