"""Everything an operator may choose, as one frozen value.

A key is set by the environment (``BOTHY_CLUSTER__MODE``) or by the TOML file that ``BOTHY_CONFIG`` names; the environment
wins. Nothing is corrected in silence: an unknown name or a bad value fails the start (``load_settings.py``). The text
under a key is its line in ``docs/operations/configuration.md``, which ``settings_reference.py`` prints.
"""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    model_validator,
)
from pydantic_settings import NoDecode

from bothy_server.kernel.rates import Rate
from bothy_server.platform.setting_values import (
    Address,
    check_database_url,
    names_password,
    parse_address,
    parse_duration,
    parse_list,
    parse_networks,
    parse_rate,
    parse_size,
    read_password,
    with_password,
)
from bothy_wire.limits import CHANNEL_MESSAGE_BYTES
from bothy_wire.signing import canonical_origin

Seconds = Annotated[float, BeforeValidator(parse_duration), Field(gt=0, allow_inf_nan=False)]
SecondsOrNone = Annotated[float, BeforeValidator(parse_duration), Field(ge=0, allow_inf_nan=False)]
Bytes = Annotated[int, BeforeValidator(parse_size), Field(gt=0)]
Count = Annotated[int, Field(gt=0)]
Limit = Annotated[Rate, NoDecode, BeforeValidator(parse_rate)]
Listener = Annotated[Address, NoDecode, BeforeValidator(parse_address)]
Networks = Annotated[tuple[IPv4Network | IPv6Network, ...], NoDecode, BeforeValidator(parse_networks)]
Origin = Annotated[str, AfterValidator(canonical_origin)]


def _of_postgres(url: SecretStr) -> SecretStr:
    check_database_url(url.get_secret_value())
    return url


DatabaseUrl = Annotated[SecretStr, AfterValidator(_of_postgres)]


class Group(BaseModel):
    """Keys that belong together; the name of the group is the first part of their names."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
        validate_default=True,
        arbitrary_types_allowed=True,
    )


class Cluster(Group):
    """Several nodes."""

    mode: Literal["single", "multi"] = "single"
    """One node, or several that share a database and signal one another through it."""
    max_waiting_signals: Count = 10_000
    """Signals that wait to be sent, or to be handled by one part of a node; more are as good as lost, and rows are read again."""
    status_interval: Seconds = 10
    """A process writes how it is into its row, and reads the database's clock, this often."""
    node_forget_after: Seconds = 86400
    """The row of a process that was silent for this long is removed."""
    clock_warn: Seconds = 2
    """A difference between the node's clock and the database's that is reported. Nothing else depends on it."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.node_forget_after <= self.status_interval:
            raise ValueError("node_forget_after must be longer than status_interval")
        return self


class Server(Group):
    """The http listeners."""

    role: Literal["api", "worker", "all"] = "all"
    """What this process does: serve requests and sockets, run the sweeps, or both."""
    listen: Listener = Address("127.0.0.1", 8080)
    """Public listener: REST, sockets and console."""
    internal_listen: Listener = Address("127.0.0.1", 8081)
    """Internal listener: health, metrics, and the drain of a node. Never public."""
    public_origins: Annotated[tuple[Origin, ...], NoDecode, BeforeValidator(parse_list)] = ()
    """Addresses that clients dial, separated by commas: the only audiences of signatures and origins of web pages."""
    trusted_proxies: Networks = ()
    """Addresses and networks of the edge and of what stands before it, separated by commas: what they say of a caller's address is believed."""
    max_body_bytes: Bytes = 64 * 1024
    """Longest body of a REST request."""
    max_connections: Count = 10_000
    """Connections that a listener holds at once; more are answered 503. A session's sockets count until they have identified themselves."""
    request_timeout: Seconds = 10
    """A request must have arrived, head and body, within this time."""
    max_probes: Count = 16
    """Probes of `bothy-server doctor` that a node answers at once; each takes up to a minute."""
    drain_timeout: Seconds = 600
    """Longest drain: after this time the process ends with whatever is left. What stops a process must have more patience."""
    drain_notice: SecondsOrNone = 0
    """A node that drains refuses new connections after this time. Longer than an edge needs to see `/readyz` say 503, where one looks."""
    drain_spread: SecondsOrNone = 5
    """The control connections of a node that drains are closed one by one within this time, so that the other nodes are not dialled by all hosts at once."""
    drain_control_wait: SecondsOrNone = 5
    """Sessions leave when no control connection is left, or this long after `drain_spread`."""
    drain_batch: Count = 3
    """Sessions whose two sides leave at once; sides that are alone leave with the first ones. Each costs handshakes on the other nodes: what two processors manage."""
    drain_batch_gap: Seconds = 0.2
    """Time between two such batches. What is left is looked at this often."""
    stop_linger: Seconds = 2
    """A process that is told twice to stop, or whose drain took too long, gives what is left this long to take its last frame or answer."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.listen == self.internal_listen and self.listen.port != 0:
            raise ValueError("listen and internal_listen must differ")
        if self.drain_notice + self.drain_spread + self.drain_control_wait >= self.drain_timeout:
            raise ValueError(
                "drain_timeout must be longer than drain_notice, drain_spread and drain_control_wait together"
            )
        return self


class Database(Group):
    """PostgreSQL."""

    url: DatabaseUrl
    """Address, `postgresql://USER:PASSWORD@HOST/NAME`. May lead to a pooler."""
    listen_url: DatabaseUrl | None = None
    """Address for LISTEN and migrations when `database.url` leads to a pooler, which cannot carry them. Default: `database.url`."""
    password_file: Path | None = None
    """File that holds the password of both addresses and nothing else; they name none then. Read once, at the start."""
    pool_size: Count = 10
    """Connections that a process keeps at most."""
    pool_timeout: Seconds = 2
    """Longest wait for a free connection."""
    connect_timeout: Seconds = 5
    """Longest wait for a new connection, rounded up to whole seconds."""
    statement_timeout: Seconds = 5
    """Longest run of one statement."""
    transaction_timeout: Seconds = 5
    """Longest life of a transaction, measured by the node, so that a database that hangs is noticed too."""
    lock_timeout: Seconds = 2
    """Longest wait for a lock."""
    idle_in_transaction_timeout: Annotated[Seconds, Field(le=5)] = 5
    """A transaction that does nothing for this long is cut, since it would hold back the notifications of all nodes."""
    tcp_timeout: Seconds = 10
    """Sent bytes that are not acknowledged for this long, or a silent peer, mean that the connection is gone."""
    stop_timeout: Seconds = 2
    """What a process that ends still asks is given up after this time; so long, too, a cancelled statement waits for the server."""
    retry_after: Seconds = 2
    """What `Retry-After` says while the database is away."""
    listen_reconnect_backoff_cap: Seconds = 5
    """Longest wait before a listener, or a process that starts while the database is away, dials again."""
    listen_watchdog_interval: Seconds = 15
    """A listener notifies itself this often, to notice a connection that is silently deaf."""
    listen_echo_timeout: Seconds = 5
    """Longest wait for that echo."""

    _password: str | None = PrivateAttr(None)

    @property
    def dialled(self) -> SecretStr:
        """`database.url` with the password."""
        return self._complete(self.url)

    @property
    def listen(self) -> SecretStr:
        """The address for LISTEN and migrations, with the password."""
        return self._complete(self.listen_url or self.url)

    def _complete(self, url: SecretStr) -> SecretStr:
        return url if self._password is None else SecretStr(with_password(url.get_secret_value(), self._password))

    @model_validator(mode="after")
    def _read_password(self) -> Self:
        if self.password_file is None:
            return self
        for key, url in (("url", self.url), ("listen_url", self.listen_url)):
            if url is not None and names_password(url.get_secret_value()):
                raise ValueError(f"{key} names a password and password_file is set: leave one of them out")
        self._password = read_password(self.password_file)
        return self

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.listen_echo_timeout > self.listen_watchdog_interval:
            raise ValueError("listen_echo_timeout must not exceed listen_watchdog_interval")
        for key in ("statement_timeout", "lock_timeout"):
            if getattr(self, key) > self.transaction_timeout:
                raise ValueError(f"{key} must not exceed transaction_timeout")
        return self


class EventLog(Group):
    """The log of changes that every node reads."""

    retention: Seconds = 7 * 86400
    """Younger events are never removed."""
    poll_interval: Seconds = 5
    """The log is read this often even when no notification comes."""
    batch: Count = 500
    """Events read at once."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.poll_interval >= self.retention:
            raise ValueError("poll_interval must be shorter than retention")
        return self


class Events(Group):
    """What pages are told of while it happens."""

    comment_interval: Annotated[Seconds, Field(le=10)] = 10
    """A reader of events hears something at least this often: pages give a stream up after 30 s of silence, and so does the edge."""
    retry: Seconds = 2
    """What a reader whose connection ended is told to wait before it comes again."""
    presence_interval: Seconds = 1
    """Changes of the presence of hosts are looked for this often."""
    stall_timeout: Seconds = 30
    """A reader that takes nothing for this long while something waits for it is cut."""
    max_waiting: Count = 2048
    """Events that wait for one reader; one that lets more wait is cut, and comes again with its id."""
    max_replayed: Count = 10_000
    """A reader that was away for more events than this reads everything anew."""
    max_per_person: Count = 16
    """Readers of one person on a node."""
    max_per_node: Count = 1024
    """Readers on a node."""


class Secrets(Group):
    """The server's signing keys."""

    signing_key_dir: Path
    """Folder of the keys, mode 0700, shared by the nodes, or copied to each."""
    key_publish_lead: Seconds = 3600
    """A new key is published at least this long before it signs."""
    reload_interval: Seconds = 60
    """The folder is read again this often."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if not self.signing_key_dir.is_absolute():
            raise ValueError("signing_key_dir must be an absolute path")
        if self.reload_interval >= self.key_publish_lead:
            raise ValueError("reload_interval must be shorter than key_publish_lead")
        return self


class Terminal(Group):
    """Terminal sessions."""

    open_timeout: Seconds = 20
    """Both sides of a session must have met after this time."""
    start_timeout: Seconds = 30
    """The program of a session must run this long after the sides met."""
    redial_after: Seconds = 0.5
    """A device side alone asks for a new dial of the host after this time."""
    host_heartbeat_interval: Seconds = 10
    """A host service sends a heartbeat this often."""
    host_heartbeat_miss_limit: Count = 3
    """A control connection that missed this many heartbeats is closed."""
    host_duplicate_probe_timeout: Seconds = 3
    """When a host connects a second time, whoever is on its older connection has this long to answer. With several nodes a new connection is asked to open sessions only after twice as long."""
    presence_flush_interval: Seconds = 0.25
    """Heartbeats of hosts are told to the other nodes in batches, this often."""
    idle_timeout: Seconds = 12 * 3600
    """A paired session without any input and output is idle after this time and is told so."""
    idle_grace: Seconds = 60
    """An idle session ends this long after it was told."""
    max_duration: Seconds = 24 * 3600
    """Longest life of a session."""
    detach_grace: Seconds = 12 * 3600
    """A session without a device ends after this time."""
    resume_window: Seconds = 24 * 3600
    """The session's own device attaches without a step-up this long after it left."""
    session_token_ttl: Seconds = 60
    """Life of stream and session tokens."""
    stale_right_max: Seconds = 600
    """With the database away, a device that was let in before may meet its host again until this long after the last news."""
    max_sessions_per_person: Count = 16
    """Sessions of one person that are not closed."""
    max_sessions_per_host: Count = 32
    """Sessions on one host that are not closed."""
    open_rate: Limit = Rate(30, 60)
    """Sessions that one person may open, whatever became of them, counted over all nodes."""
    max_pending_per_node: Count = 256
    """Sides on one node whose counterpart has not come."""
    max_expectations_per_node: Count = 65_536
    """Sessions that one node expects sides of."""
    sweep_interval: Seconds = 10
    """A worker looks this often for sessions that no node ended."""
    sweep_batch: Count = 500
    """Sessions that a worker ends in one transaction."""
    last_frame_interval: Seconds = 60
    """What passed in a session, and that something passed, is written at most this often while it is paired."""
    stall_timeout: Seconds = 120
    """A side that takes nothing for this long while bytes wait for it is closed."""
    close_linger: Seconds = 10
    """Longest wait for a side to take what is written before its close frame."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for key in ("detach_grace", "idle_timeout"):
            if getattr(self, key) > self.max_duration:
                raise ValueError(f"{key} must not exceed max_duration")
        if self.redial_after >= self.open_timeout / 2:
            raise ValueError("redial_after must be shorter than half of open_timeout")
        return self


class Hosts(Group):
    """Hosts and their pairing."""

    pairing: Literal["confirm", "auto"] = "confirm"
    """`confirm`: a paired host waits until an owner confirmed its fingerprint. `auto`: it does not; for demonstrations."""
    pairing_code_ttl: Seconds = 900
    """Life of a pairing code."""
    last_seen_interval: Seconds = 60
    """When a connected host was last seen is written at most this often."""
    max_waiting_frames: Annotated[Count, Field(ge=1024)] = 2048
    """Frames that wait for one control connection; one that takes none while so many wait is closed. A report of 1024 sessions may be answered by as many frames."""


class Identity(Group):
    """Persons and devices."""

    access_token_ttl: Seconds = 600
    """Life of an access token."""
    challenge_ttl: Seconds = 60
    """A login or step-up challenge must be answered within this time."""
    step_up_window: Seconds = 60
    """A step-up must be used within this time."""
    invite_ttl: Seconds = 24 * 3600
    """Life of an invite."""
    device_login_ttl: Seconds = 600
    """A new device that asks to be let in by another one waits this long for a person's approval."""
    device_login_interval: Seconds = 5
    """It may ask this often whether it was let in."""
    max_device_logins: Count = 10_000
    """Devices that wait so at once."""
    browser_login_ttl: Seconds = 24 * 3600
    """A browser signs in again, with a passkey, this long after its last such login, or after the invite that let it in."""
    passkey_challenge_ttl: Seconds = 300
    """A passkey must answer within this time: a person may have to take out a telephone first."""
    first_passkey_window: Seconds = 600
    """A browser that an invite let in adds its first passkey within this time, and needs no step-up for it."""
    max_passkeys: Count = 20
    """Passkeys of one person."""
    clock_leeway: SecondsOrNone = 5
    """Tolerated for the start of a token's life, never for its end."""
    address_rate: Limit = Rate(1200, 60)
    """Calls from one client network (an IPv4 address, an IPv6 /64) that need no signed-in person, on each node. An office behind one address is one client, and so is everybody behind an edge that is not in `server.trusted_proxies`."""
    device_rate: Limit = Rate(600, 60)
    """Calls of one signed-in device, on each node."""
    max_devices: Count = 16_384
    """Devices that a node counts at once. Beyond it those that owe least are forgotten."""
    max_addresses: Count = 16_384
    """Client networks that a node counts at once. Beyond it those that owe least are forgotten."""
    attempt_rate: Limit = Rate(10, 60)
    """Failed logins of a device, failed confirmations of a person and persons that they name in vain, wrong codes and passkeys from a client network, logins that it begins and others approve, and codes that a person types, each counted over all nodes. Who proves a key always passes."""
    repeat_window: Seconds = 24 * 3600
    """A request with `Idempotency-Key` that is sent again within this time is answered from what the first one made."""
    audit_scan: Count = 100_000
    """Rows of the audit that one page of an answer looks at; beyond it the page ends, with or without an entry."""


class Wire(Group):
    """The sockets."""

    identify_timeout: Seconds = 10
    """A new connection must identify within this time."""
    max_unidentified_frame_bytes: Bytes = 16 * 1024
    """Longest message before that, and longest head of a request."""
    max_frame_bytes: Annotated[Bytes, Field(ge=CHANNEL_MESSAGE_BYTES)] = CHANNEL_MESSAGE_BYTES + 256
    """Longest message after that; at least a channel message of 64 KiB."""
    ping_interval: Seconds = 20
    """Each connection is pinged this often."""
    ping_timeout: Seconds = 20
    """A connection on which not a byte came for the interval and this long after it is dropped."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.max_unidentified_frame_bytes > self.max_frame_bytes:
            raise ValueError("max_unidentified_frame_bytes must not exceed max_frame_bytes")
        return self


class Relay(Group):
    """Buffers between the two sides of a session."""

    buffer_high_bytes: Bytes = 256 * 1024
    """A side is not read while more than this waits for its counterpart."""
    buffer_low_bytes: Bytes = 64 * 1024
    """It is read again below this."""
    socket_buffer_bytes: Bytes | None = None
    """Send and receive buffer of each socket. Default: the system's."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.buffer_low_bytes >= self.buffer_high_bytes:
            raise ValueError("buffer_low_bytes must be below buffer_high_bytes")
        return self


class Log(Group):
    """The program's own log."""

    format: Literal["json", "console"] = "json"
    """One JSON object a line, or text for a person."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least serious record that is written."""
    repeat_rate: Limit = Rate(1, 60)
    """Most records of one kind of repeated warning; the next one says how many were left out."""


def required() -> Any:
    """A group with required keys: validated from nothing, so that an error names the key and not the group."""
    return Field(default_factory=dict, validate_default=True)


class Settings(Group):
    """All groups."""

    cluster: Cluster = Cluster()
    server: Server = Server()
    database: Database = required()
    event_log: EventLog = EventLog()
    events: Events = Events()
    secrets: Secrets = required()
    terminal: Terminal = Terminal()
    hosts: Hosts = Hosts()
    identity: Identity = Identity()
    wire: Wire = Wire()
    relay: Relay = Relay()
    log: Log = Log()
