"""What is audited: the closed list of actions, each with its closed list of codes (``docs/spec/data.md``, Actions)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from bothy_wire.frames import CloseReason, OpenFailure

_ASKED_FOR = "client_closed"
_ENDS = frozenset(get_args(CloseReason)) - {_ASKED_FOR, "open_failed"} | frozenset(get_args(OpenFailure))
"""A close_reason; of an opening that failed, the close_detail."""

AUDIT_ACTIONS: Mapping[str, frozenset[str]] = {
    "attempt.refused": frozenset(
        {"code", "device_login", "login", "passkey_counter", "person", "step_up", "user_code"}
    ),
    "device.add": frozenset({"approval", "invite", "passkey"}),
    "device.approve": frozenset({"approved", "denied"}),
    "device.login": frozenset({"passkey"}),
    "device.logout": frozenset({"logged_out"}),
    "device.revoke": frozenset({"revoked"}),
    "host.confirm": frozenset({"confirmed"}),
    "host.connect": frozenset({"duplicate_connection"}),
    "host.create": frozenset({"created"}),
    "host.grant": frozenset({"changed", "given", "revoked"}),
    "host.owner": frozenset({"added", "removed"}),
    "host.pair": frozenset({"paired"}),
    "host.pairing_code": frozenset({"created"}),
    "host.rename": frozenset({"renamed"}),
    "host.state": frozenset({"active", "disabled", "retired"}),
    "invite.create": frozenset({"created", "own"}),
    "node.drain": frozenset({"asked"}),
    "passkey.add": frozenset({"added"}),
    "passkey.remove": frozenset({"device_revoked", "removed"}),
    "person.add": frozenset({"operator", "person"}),
    "person.state": frozenset({"disabled", "enabled", "no_operator", "operator"}),
    "step_up.confirm": frozenset({"attach", "manage_account", "manage_host", "manage_relay", "open"}),
    "terminal.attach": frozenset({"attached"}),
    "terminal.close": frozenset({_ASKED_FOR}),
    "terminal.open": frozenset({"opened"}),
    "terminal.terminate": _ENDS,
}


def check_audited(action: str, code: str) -> None:
    """Raises ``ValueError`` for a pair that is not in :data:`AUDIT_ACTIONS`."""
    if code not in AUDIT_ACTIONS.get(action, ()):
        raise ValueError(f"{action} {code} is not in AUDIT_ACTIONS")
