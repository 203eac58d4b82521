"""The whole of bothy as real processes with a wiretap on both sides of the edge, and a session that is open all the while.

Nothing in it is refused for its age or for haste, so that a refusal says something about what was shown.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import psycopg

from bothy_device.state import Login, Logins
from bothy_kit.demo_check import Screen, on_terminal
from bothy_kit.nginx import edge
from bothy_kit.processes import scratch
from bothy_kit.programs import Program, ask, command
from bothy_kit.wiretap import Message, Wiretap, wiretap
from bothy_kit.world_parts import (
    HOST,
    Node,
    administer,
    get,
    log_in,
    reserved_nodes,
    running_host,
    running_nodes,
    server_environment,
    wait_for_host,
)
from bothy_wire.ids import HostId

_PATIENT = {
    "BOTHY_IDENTITY__ACCESS_TOKEN_TTL": "1 h",
    "BOTHY_IDENTITY__CHALLENGE_TTL": "1 h",
    "BOTHY_IDENTITY__STEP_UP_WINDOW": "1 h",
    "BOTHY_TERMINAL__SESSION_TOKEN_TTL": "1 h",
    "BOTHY_TERMINAL__OPEN_TIMEOUT": "1 h",
    "BOTHY_IDENTITY__ADDRESS_RATE": "100000 per second",
    "BOTHY_IDENTITY__ATTEMPT_RATE": "100000 per second",
    "BOTHY_IDENTITY__DEVICE_RATE": "100000 per second",
    "BOTHY_TERMINAL__OPEN_RATE": "100000 per second",
    "BOTHY_LOG__LEVEL": "debug",
}
_DECIDES = {
    "persons": "id, name, is_operator, disabled_at",
    "devices": "id, person_id, kind, signing_key, channel_key, revoked_at",
    "passkeys": "id, person_id, credential_id, removed_at",
    "device_logins": "id, approved, device_id",
    "invites": "id, person_id, used_at",
    "pairing_codes": "id, host_id, used_at",
    "hosts": "id, state, signing_key, channel_key, pairing_seq",
    "host_owners": "host_id, person_id",
    "host_grants": "host_id, person_id, expires_at",
    "step_ups": "id, consumed_at",
    "terminal_sessions": "id, host_id, person_id",
}
_JWT = re.compile(r"eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+")
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_BYTEA = re.compile(r"\\x((?:[0-9a-f]{2})+)")
_BASE64 = re.compile(r"(?<![\w+/-])(?:[A-Za-z0-9+/]{4}){5,22}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?(?![\w+/=-])")


@dataclass(frozen=True, slots=True)
class TappedWorld:
    """What runs."""

    url: str
    """Where everybody dials who has a right to, and is recorded."""
    edge: str
    """Where a stranger dials."""
    folder: Path
    database: str
    nodes: tuple[Node, ...]
    outside: Wiretap
    inside: tuple[Wiretap, ...]
    service: Program
    host_id: HostId
    login: Login
    """The keys of the device that runs ``bothy``."""
    environment: dict[str, str]
    """In which ``bothy`` is that device."""
    unused_invite: str
    unused_pairing_code: str
    typed: str
    """A secret that was typed and not echoed."""
    printed: str
    """One that was shown and not typed."""
    screen: Screen
    """The terminal of the session that is open."""

    def sql(self, statement: str) -> list[str]:
        """The first column, as text."""
        with psycopg.connect(self.database) as connection:
            return [str(row[0]) for row in connection.execute(statement.encode()).fetchall()]

    def programs_started(self) -> int:
        """What the host service tells its own log."""
        return self.service.log.read_text().count(" runs as ")

    def who_may_enter(self) -> list[str]:
        """All rows that decide it, and all that was opened. For comparing."""
        rows = (self.sql(f"SELECT ROW({columns})::text FROM {table} ORDER BY 1") for table, columns in _DECIDES.items())
        return [*(row for table in rows for row in table), str(self.programs_started())]


@contextmanager
def tapped_world(database: str) -> Iterator[TappedWorld]:
    """Start everything on a database at the newest migration. Raises :class:`~bothy_kit.programs.ProgramError`."""
    with ExitStack() as stack:
        folder = stack.enter_context(scratch("bothy-tapped"))
        nodes, worker = stack.enter_context(reserved_nodes())
        inside = tuple(stack.enter_context(wiretap(("127.0.0.1", each.port))) for each in nodes)
        upstreams = [(node.name, "127.0.0.1", tap.port) for node, tap in zip(nodes, inside, strict=True)]

        def every_access_is_logged(edge_folder: Path) -> None:
            path = edge_folder / "nginx.conf"
            shipped = path.read_text()  # it logs nothing of a request; another one may
            talking = shipped.replace("access_log off;", "access_log access.log;").replace(
                "stderr crit;", "stderr info;"
            )
            assert talking != shipped
            path.write_text(talking)
            (folder / "access.log").symlink_to(edge_folder / "access.log")

        behind = stack.enter_context(edge(upstreams, log=folder / "edge.log", edit=every_access_is_logged))
        outside = stack.enter_context(wiretap(("127.0.0.1", urlsplit(behind).port or 0)))
        url = f"http://127.0.0.1:{outside.port}"

        server = {**server_environment(database, folder / "keys", url), **_PATIENT}
        ask("bothy-server", ["keys", "init"], server)
        stack.enter_context(running_nodes((*nodes, worker), server, folder, lambda _: None))
        robin = administer(server, "person", "add", "Robin")
        environment = log_in(folder / "device", url, "laptop", robin["invite"])
        added = administer(server, "host", "add", HOST, "--owner", "Robin")
        service = stack.enter_context(running_host(folder, url, added["code"]))
        wait_for_host(nodes, service)

        typed, printed = f"typed{secrets.token_hex(12)}", f"printed{secrets.token_hex(12)}"
        screen, _ = stack.enter_context(on_terminal([command("bothy"), "open", HOST], environment))
        screen.type(b"exec sh\nPS1= PS2=; stty -echo; echo he''re\n")
        screen.expect(rb"here\r\n")
        screen.type(f"read hidden; echo go''t ${{#hidden}} {printed[:9]}''{printed[9:]}\n{typed}\n".encode())
        screen.expect(f"got {len(typed)} {printed}".encode())

        yield TappedWorld(
            url=url,
            edge=behind,
            folder=folder,
            database=database,
            nodes=nodes,
            outside=outside,
            inside=inside,
            service=service,
            host_id=HostId(UUID(added["host_id"])),
            login=Logins(folder / "device").load(None),
            environment=environment,
            unused_invite=administer(server, "person", "add", "Sam")["invite"],
            unused_pairing_code=administer(server, "host", "add", "lab-2", "--owner", "Robin")["code"],
            typed=typed,
            printed=printed,
            screen=screen,
        )


@dataclass(frozen=True, slots=True)
class Spoken:
    """A socket that was recorded: where, and what its caller said."""

    path: str
    subprotocol: str
    said: list[str | bytes]


@dataclass(frozen=True, slots=True)
class Haul:
    """All rows, logs and metrics of the relay and all bytes of both wiretaps; never what is on a device or a host."""

    raw: bytes
    text: str
    requests: list[Message]
    """What was asked of the edge outside of sockets."""
    sockets: list[Spoken]

    @property
    def tokens(self) -> list[str]:
        """All tokens of the relay."""
        return list(dict.fromkeys(_JWT.findall(self.text)))

    def of_kind(self, kind: str) -> list[str]:
        """The tokens of one kind (access, stream, session) in the order of the connections that they passed on."""
        return [each for each in self.tokens if token_kind(each) == kind]

    @property
    def ids(self) -> list[str]:
        """All ids."""
        return list(dict.fromkeys(_ID.findall(self.text)))

    def binary(self, length: int) -> list[bytes]:
        """All hashes, keys, challenges and signatures of this length."""
        found = [bytes.fromhex(each) for each in _BYTEA.findall(self.text)]
        found += [base64.b64decode(each) for each in _BASE64.findall(self.text)]
        return list(dict.fromkeys(each for each in found if len(each) == length))

    def holds(self, secret: bytes) -> bool:
        """Whether it is there in any form that something of ours writes."""
        forms = secret, secret.hex().encode(), base64.b64encode(secret), base64.urlsafe_b64encode(secret).rstrip(b"=")
        return any(form in self.raw for form in forms)


def haul(world: TappedWorld) -> Haul:
    """Take everything as it is now."""
    tables = world.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    texts = [row for table in tables for row in world.sql(f"SELECT t::text FROM {table} t")]
    logs = [path for path in world.folder.glob("*.log") if path.name != "bothy-host.log"]
    assert {"access.log", "edge.log", "api-1.log", "api-2.log", "worker.log"} <= {path.name for path in logs}
    texts += [path.read_text(errors="replace") for path in logs]
    texts += [get(node.internal_port, "/metrics")[1] for node in world.nodes]
    raw = [text.encode() for text in texts]
    for call in (call for tap in (world.outside, *world.inside) for call in list(tap.calls)):
        for half in (call.asked, call.answered):
            _, said = half.read()
            raw += [bytes(half.raw), *(each.encode() if isinstance(each, str) else each for each in said)]
            texts += [bytes(half.raw).decode("latin-1"), *(each for each in said if isinstance(each, str))]
    requests, sockets = [], []
    for call in list(world.outside.calls):
        messages, said = call.asked.read()
        if said:
            upgrade = messages.pop()
            sockets.append(Spoken(upgrade.line.split()[1], upgrade.headers["sec-websocket-protocol"], said))
        requests += messages
    return Haul(b"\n".join(raw), "\n".join(texts), requests, sockets)


def token_kind(token: str) -> str:
    """What its header says."""
    header = json.loads(base64.urlsafe_b64decode(token.split(".", maxsplit=1)[0] + "=="))
    return str(header["typ"]).removeprefix("bothy-").removesuffix("+jwt")


def with_tokens(token: str, text: str) -> str:
    """The text with this token in the place of each that it holds."""
    return _JWT.sub(token, text)
