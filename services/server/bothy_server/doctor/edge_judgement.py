"""From what was observed at the edge to findings. No network, no time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from bothy_server.doctor.finding import Finding, failed, ok, unseen
from bothy_server.platform.edge_probe import Seen


@dataclass(frozen=True, slots=True)
class Answers:
    """The nodes that answered for one session id: the stream path, asked twice, and the data path."""

    stream: str
    data: str
    again: str


@dataclass(frozen=True, slots=True)
class Held:
    """An answer with a silence of ``hold_s`` before its last part. Seconds since the request; None for what never came."""

    early_s: float | None
    last_s: float | None
    hold_s: float


def routing(answers: Sequence[Answers], living: Collection[str] | None) -> list[Finding]:
    """``living``: node ids by the database, None when that is not known."""
    changed = sum(each.stream != each.again for each in answers)
    split = sum(each.stream != each.data for each in answers)
    total = len(answers)
    if changed:
        repeat = failed("routing.repeat", f"{changed} of {total} sessions reached another node when asked again")
        pairs = unseen("routing.pairs", "needs an edge that gives the same answer twice")
    else:
        repeat = ok("routing.repeat", f"{total} sessions, the same node each time")
        pairs = (
            failed("routing.pairs", f"the two paths of {split} of {total} sessions lead to different nodes")
            if split
            else ok("routing.pairs", f"{total} sessions, both paths at one node")
        )
    return [repeat, pairs, _nodes({name for each in answers for name in (each.stream, each.data)}, living)]


def _nodes(reached: Collection[str], living: Collection[str] | None) -> Finding:
    if living is None:
        return unseen("routing.nodes", "the database does not tell which nodes live")
    missing, strange = set(living) - set(reached), set(reached) - set(living)
    if missing or strange:
        told = [f"never reached {name}" for name in sorted(missing)] + [f"unknown {name}" for name in sorted(strange)]
        return failed("routing.nodes", "; ".join(told))
    return ok("routing.nodes", f"{len(set(living))} living, all reached")


def spellings(upgraded: Sequence[str], asked: int) -> Finding:
    """``upgraded``: the wrong spellings that became a socket, or that a node answered as a stream path."""
    if upgraded:
        return failed("spellings", f"accepted: {', '.join(upgraded)}")
    return ok("spellings", f"{asked} wrong spellings, none accepted")


def upgrade(refused: Mapping[str, str], asked: int) -> Finding:
    """``refused``: socket paths with what came instead of a node's hello."""
    if refused:
        return failed("upgrade", "; ".join(f"{path}: {what}" for path, what in refused.items()))
    return ok("upgrade", f"{asked} paths, each with the node's hello")


def buffering(held: Held) -> Finding:
    """The early part has to come well before the silence ends."""
    if held.early_s is None:
        return unseen("buffering", "the answer was cut before its first bytes came")
    if held.early_s > held.hold_s / 2:
        return failed("buffering", f"the first bytes came after {held.early_s:.1f} s, with the end of the answer")
    return ok("buffering", f"the first bytes came after {held.early_s:.2f} s")


def idle(held: Held) -> Finding:
    """The last part has to come."""
    if held.last_s is None:
        return failed("idle", f"cut during a silence of {held.hold_s:.1f} s")
    return ok("idle", f"open through {held.hold_s:.1f} s of silence; longer ones are not tried")


def trusted_proxies(seen: Seen, forged: str) -> Finding:
    """``forged``: what the doctor itself wrote into X-Forwarded-For, as a stranger could."""
    check = "trusted_proxies"
    if seen.forwarded in ([], [forged]):
        return failed(check, "the edge appends nothing to X-Forwarded-For")
    if seen.client == seen.peer:
        return failed(check, f"the edge dials from {seen.peer}, which the node does not trust")
    if seen.client == forged:
        return unseen(check, f"the doctor dials from {seen.forwarded[-1]}, itself a trusted proxy: run it elsewhere")
    if forged in seen.forwarded and seen.client != seen.forwarded[seen.forwarded.index(forged) + 1]:
        return failed(check, f"the node stops at {seen.client}, a proxy in front of the edge that it does not trust")
    return ok(check, f"edge {seen.peer}, caller {seen.client}")


def origins(seen: Sequence[Seen], dialled: str) -> Finding:
    """``dialled``: the canonical origin of the edge."""
    lacking = [each.node_id for each in seen if dialled not in each.origins]
    if lacking:
        return failed("origins", f"{dialled} is no public origin of {', '.join(lacking)}")
    return ok("origins", f"{dialled}, on {len(seen)} nodes")
