"""What the doctor checks, and what a check finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """``unseen``: nothing was found because it could not be looked at; the line says why."""

    OK = "ok"
    FAILED = "failed"
    UNSEEN = "unseen"


@dataclass(frozen=True, slots=True)
class Check:
    """A line of the doctor, as ``docs/operations/doctor.md`` describes it."""

    name: str
    proves: str
    blind: str
    fix: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the answer."""

    check: str
    verdict: Verdict
    seen: str


def ok(check: str, seen: str) -> Finding:
    """Nothing wrong."""
    return Finding(check, Verdict.OK, seen)


def failed(check: str, seen: str) -> Finding:
    """Something is wrong; the check's fix says what to do."""
    return Finding(check, Verdict.FAILED, seen)


def unseen(check: str, why: str) -> Finding:
    """Could not be looked at."""
    return Finding(check, Verdict.UNSEEN, why)


CHECKS = {
    check.name: check
    for check in (
        Check(
            "database",
            "PostgreSQL answers, is no standby and runs our statements with their timeouts",
            "how it behaves under load",
            "set database.url to the primary and see that it runs",
        ),
        Check("migrations", "the tables are those of this release", "rows", "run `bothy-server migrate`"),
        Check(
            "key_store",
            "the folder is closed to others, a key in it signs now, and none that should waits",
            "the folder of another machine",
            "run `bothy-server keys init`, or chmod 700 on secrets.signing_key_dir; docs/operations/keys.md for a key that waits",
        ),
        Check(
            "node_keys",
            "every living node holds the keys that this machine holds",
            "a change of the last cluster.status_interval",
            "share secrets.signing_key_dir between all nodes, or carry it with `bothy-server keys export` and `import`",
        ),
        Check(
            "listener_echo",
            "a notification comes back through database.listen_url, and the living nodes hear themselves",
            "a node whose own settings differ and that runs in mode single",
            "point database.listen_url at PostgreSQL itself, not at a transaction pooler",
        ),
        Check(
            "clock",
            "this machine's clock, and that of each node behind the edge, agree with the database's",
            "nodes that the edge does not reach",
            "run a time service (NTP) on every machine",
        ),
        Check(
            "edge",
            "something answers at the edge's address, with a certificate that is good for it",
            "what it is",
            "see that the edge runs, and that --edge is the address that clients dial",
        ),
        Check(
            "routing.repeat",
            "a stream path leads to the same node each time",
            "what happens while a node fails",
            "put `hash $bothy_terminal_session consistent` into the upstream of the stream paths",
        ),
        Check(
            "routing.pairs",
            "both stream paths of a session lead to one node",
            "whether the hash covers too much or two lists differ: --nginx-conf tells",
            "hash the session id alone, in one upstream that both stream paths use",
        ),
        Check(
            "routing.nodes",
            "the edge leads to every living node and to no other",
            "a node that the database does not know",
            "list every node once in the edge's upstream",
        ),
        Check(
            "spellings",
            "other spellings of a stream path are refused or at least not upgraded",
            "spellings that nobody thought of",
            "use the locations of infra/compose/edge/nginx.conf",
        ),
        Check(
            "upgrade",
            "all three socket paths become a WebSocket on which the node speaks first",
            "what a logged-in person sees",
            "pass Upgrade and Connection on in the locations of the three socket paths",
        ),
        Check(
            "probe",
            "a node behind the edge answers a question that this machine signed",
            "why it does not: node_keys tells of keys",
            "pass Authorization on at the edge, and share secrets.signing_key_dir between all nodes and this machine",
        ),
        Check(
            "buffering",
            "the first bytes of an answer on a stream path pass while the rest is not there",
            "the socket itself, which nginx never buffers",
            "set `proxy_buffering off` for the stream paths",
        ),
        Check(
            "idle",
            "a stream path stays open through a silence longer than wire.ping_interval",
            "a timeout beyond that: the pings keep it from striking",
            "set `proxy_read_timeout` of the stream paths to terminal.idle_timeout + terminal.idle_grace",
        ),
        Check(
            "trusted_proxies",
            "a node finds the caller's address behind the edge and no forged one",
            "a doctor that runs on a trusted proxy cannot be told from it",
            "append X-Forwarded-For at the edge and list the edge's address in server.trusted_proxies",
        ),
        Check(
            "origins",
            "every node reached takes the edge's address for its own",
            "other addresses that clients dial",
            "add the address that clients dial to server.public_origins",
        ),
        Check(
            "conf.file",
            "the file and what it includes can be read",
            "whether nginx takes it: `nginx -t` tells",
            "name the file that nginx is started with, and let this account read what it includes",
        ),
        Check(
            "conf.zone",
            "the upstream of the stream paths shares its state between nginx's workers",
            "whether nginx runs with this file",
            "put `zone NAME 256k` into the upstream",
        ),
        Check(
            "conf.upstreams",
            "both stream paths use one upstream block",
            "whether nginx runs with this file",
            "name the same upstream for both stream paths",
        ),
        Check(
            "conf.hash",
            "the hash covers the session id and not the whole address",
            "whether nginx runs with this file",
            "put `hash $bothy_terminal_session consistent` into the upstream of the stream paths",
        ),
        Check(
            "conf.timeout",
            "nginx never cuts a quiet terminal before the server ends it",
            "whether nginx runs with this file",
            "set `proxy_read_timeout` of the stream paths to terminal.idle_timeout + terminal.idle_grace",
        ),
    )
}
"""By name, in the order of the answer."""
