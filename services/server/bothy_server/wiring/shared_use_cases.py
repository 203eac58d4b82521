"""Use cases that the command line and a node have both."""

from __future__ import annotations

from bothy_server import limits
from bothy_server.cluster.app.node_registry import NodeDirectory
from bothy_server.hosts.app.pairing import Pairing
from bothy_server.identity.adapters.keystore.tokens import KeyStoreTokens
from bothy_server.identity.app.api import Act, check_operates, hold_caller, spend_step_up
from bothy_server.identity.app.devices import Devices
from bothy_server.identity.app.invites import Invites
from bothy_server.identity.app.people import People
from bothy_server.kernel.caller import Caller
from bothy_server.kernel.unit import Unit
from bothy_server.platform.clock import ClusterClock
from bothy_server.platform.settings import Settings
from bothy_server.platform.unit_of_work import SqlUnitOfWork
from bothy_server.terminal.app.host_sessions import HostSessions
from bothy_server.terminal.app.right_losses import RightLosses
from bothy_server.wiring.process import Foundation
from bothy_wire.ids import StepUpId


def tokens(base: Foundation) -> KeyStoreTokens:
    """Tokens by the keys of this machine. Raises ``KeyStoreError``."""
    return KeyStoreTokens(base.settings.secrets.signing_key_dir, base.clock, limits.tokens(base.settings))


def tokens_of_this_machine(settings: Settings) -> KeyStoreTokens:
    """By the keys as they are now and the machine's own clock: for two of its processes, without a database."""
    return KeyStoreTokens(settings.secrets.signing_key_dir, ClusterClock(), limits.tokens(settings))


def people(base: Foundation, uow: SqlUnitOfWork) -> People:
    """Persons and their invites."""
    return People(uow, base.clock, _invites(base), RightLosses())


def devices(base: Foundation, uow: SqlUnitOfWork) -> Devices:
    """The devices of persons."""
    return Devices(uow, _invites(base), RightLosses())


def _invites(base: Foundation) -> Invites:
    return Invites(base.clock, base.settings.identity.invite_ttl)


class OperatorsPermission:
    """Implements the cluster's port ``Permission``."""

    async def check(self, unit: Unit, caller: Caller | None) -> None:
        """See the port."""
        await check_operates(unit, caller)

    async def spend(self, unit: Unit, caller: Caller | None, step_up_id: StepUpId | None) -> None:
        """See the port."""
        await hold_caller(unit, caller)
        await spend_step_up(unit, caller, step_up_id, Act("manage_relay"))


def nodes(base: Foundation, uow: SqlUnitOfWork) -> NodeDirectory:
    """The processes that share the database."""
    return NodeDirectory(uow, OperatorsPermission(), limits.registry(base.settings))


def pairing(base: Foundation, uow: SqlUnitOfWork, tokens: KeyStoreTokens, events: HostSessions) -> Pairing:
    """Hosts and their pairing codes; ``events`` hears what changes for sessions."""
    settings = base.settings
    return Pairing(uow, tokens, base.clock, settings.server.public_origins, events, limits.pairing(settings))
