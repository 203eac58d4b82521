"""From what the database and the key store told to findings. No network, no time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from bothy_server.doctor.finding import Finding, failed, ok, unseen


@dataclass(frozen=True, slots=True)
class Told:
    """A living node's last status. ``echo_age_s`` is None where it has no listener."""

    node_id: str
    key_ids: tuple[str, ...]
    signs_with: str | None
    echo_age_s: float | None
    serves: bool


def node_keys(own: Collection[str], nodes: Collection[Told]) -> Finding:
    """All nodes that serve publish the same keys as this machine. None begins to sign with a key that another lacks."""
    serving = [each for each in nodes if each.serves]
    if not serving:
        return unseen("node_keys", "no node lives")
    differences = [
        f"node {node_id} {fault} {', '.join(sorted(kids))}"
        for node_id, theirs in ((each.node_id, set(each.key_ids)) for each in serving)
        for fault, kids in (
            ("lacks", set(own) - theirs),
            ("has what this machine lacks or retired:", theirs - set(own)),
        )
        if kids
    ]
    if differences:
        return failed("node_keys", "; ".join(differences))
    signing = sorted({each.signs_with for each in serving if each.signs_with is not None})
    return ok("node_keys", f"{len(set(own))} keys on {len(serving)} nodes, which sign with {', '.join(signing)}")


def listener_echo(echo_s: float | None, nodes: Collection[Told], longest_age_s: float) -> Finding:
    """``echo_s``: how long our own notification took, None when it did not come back."""
    if echo_s is None:
        return failed("listener_echo", "a notification did not come back: LISTEN is lost on the way")
    deaf = [each.node_id for each in nodes if each.echo_age_s is not None and each.echo_age_s > longest_age_s]
    if deaf:
        return failed("listener_echo", f"{', '.join(deaf)} heard nothing for more than {longest_age_s:.0f} s")
    return ok("listener_echo", f"came back after {echo_s * 1000:.0f} ms")


def clock(skews: Mapping[str, float], warn_s: float) -> Finding:
    """``skews``: seconds that each machine is ahead of the database, by its name."""
    wrong = {name: skew for name, skew in skews.items() if abs(skew) > warn_s}
    if wrong:
        return failed("clock", "; ".join(f"{name} differs by {skew:+.1f} s" for name, skew in wrong.items()))
    if not skews:
        return unseen("clock", "no clock could be compared with the database's")
    return ok("clock", f"{len(skews)} clocks within {max(map(abs, skews.values())):.2f} s")
