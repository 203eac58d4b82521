"""What a node's public listener serves."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, WebSocketRoute

from bothy_server import limits
from bothy_server.cluster.adapters.http.nodes import Nodes
from bothy_server.events.adapters.http.events import Events
from bothy_server.hosts.adapters.http.hosts import Hosts
from bothy_server.hosts.adapters.sockets.control import ControlSockets
from bothy_server.hosts.app.directory import Directory
from bothy_server.hosts.app.naming import Naming
from bothy_server.hosts.app.transitions import Transitions
from bothy_server.identity.adapters.http.audit import AuditReading
from bothy_server.identity.adapters.http.device_logins import DeviceLoginOperations
from bothy_server.identity.adapters.http.devices import OwnDevices
from bothy_server.identity.adapters.http.grants import HostGrants
from bothy_server.identity.adapters.http.passkeys import PersonPasskeys
from bothy_server.identity.adapters.http.people import Persons
from bothy_server.identity.adapters.http.sign_in import SignIn
from bothy_server.identity.adapters.http.step_ups import StepUps
from bothy_server.identity.adapters.keystore.tokens import KeyStoreTokens
from bothy_server.identity.adapters.keystore.used import UsedTokens
from bothy_server.identity.adapters.webauthn.authenticators import WebAuthn
from bothy_server.identity.app.api import Attempts, Callers
from bothy_server.identity.app.audit import Audit
from bothy_server.identity.app.device_logins import DeviceLogins
from bothy_server.identity.app.grants import Grants
from bothy_server.identity.app.login import Login
from bothy_server.identity.app.passkey_login import PasskeyLogin
from bothy_server.identity.app.passkey_proof import PasskeyProof
from bothy_server.identity.app.passkeys import Passkeys
from bothy_server.identity.app.ports import TokenInvalid
from bothy_server.identity.app.step_up import StepUp
from bothy_server.identity.domain.tokens import ProbeToken
from bothy_server.platform.client_rates import ClientRates
from bothy_server.platform.console import Console
from bothy_server.platform.edge_probe import EdgeProbe
from bothy_server.platform.http import SecurityHeaders, exception_handlers
from bothy_server.platform.page_reports import PageReports
from bothy_server.platform.rest_api import RestApi
from bothy_server.terminal.adapters.http.sessions import TerminalSessions, not_upgraded
from bothy_server.terminal.adapters.sockets.side import SideSockets
from bothy_server.terminal.app.open_session import Sessions
from bothy_server.terminal.app.operator_sessions import OperatorSessions
from bothy_server.terminal.app.owner_sessions import OwnerSessions
from bothy_server.terminal.app.right_losses import RightLosses
from bothy_server.wiring import shared_use_cases
from bothy_server.wiring.core import Core
from bothy_server.wiring.process import Foundation
from bothy_wire.ids import NodeId
from bothy_wire.limits import CONTROL_PATH, data_path, stream_path


def public_app(
    base: Foundation, core: Core, node_id: NodeId, control_sockets: ControlSockets, side_sockets: SideSockets
) -> Starlette:
    """REST, the three sockets and the console."""
    settings, clock, uow, tokens = base.settings, base.clock, core.uow, core.tokens
    client_rates = ClientRates(settings.identity.address_rate, settings.identity.max_addresses, clock.monotonic)
    device_rates = ClientRates(settings.identity.device_rate, settings.identity.max_devices, clock.monotonic)
    too_often = "Calls refused for coming too often"
    core.metrics.gauge("bothy.rest.rate_limited", too_often, lambda: client_rates.refused + device_rates.refused)
    rest = RestApi(
        caller=Callers(uow, tokens).caller,
        client_rates=client_rates,
        device_rates=device_rates,
        max_body_bytes=settings.server.max_body_bytes,
        trusted=settings.server.trusted_proxies,
        repeat_window=settings.identity.repeat_window,
    )
    login = Login(uow, tokens, clock, settings.server.public_origins, limits.login(settings))
    attempts = Attempts(uow, settings.identity.attempt_rate)
    origins = settings.server.public_origins
    device_logins = DeviceLogins(uow, clock, origins, attempts, limits.device_logins(settings))
    webauthn = WebAuthn(origins)
    proof = PasskeyProof(uow, webauthn)
    step_up = StepUp(uow, clock, origins, proof, limits.step_up(settings))
    passkeys = Passkeys(uow, clock, origins, webauthn, limits.passkeys(settings))
    passkey_login = PasskeyLogin(uow, tokens, clock, origins, proof, limits.passkey_login(settings))
    sessions = Sessions(uow, tokens, clock, core.presence, limits.sessions(settings))
    core.metrics.gauge("bothy.terminal.sessions.opened", "Sessions that this node opened", lambda: sessions.opened)
    pairing = shared_use_cases.pairing(base, uow, tokens, core.host_sessions)
    devices = shared_use_cases.devices(base, uow)
    routes: list[BaseRoute] = [
        WebSocketRoute(CONTROL_PATH, control_sockets.serve),
        WebSocketRoute(data_path("{session_id}"), side_sockets.data),
        WebSocketRoute(stream_path("{session_id}"), side_sockets.stream),
        *not_upgraded(node_id, _probe(base, tokens, node_id).answer),
        *rest.routes(
            SignIn(login, tokens, attempts),
            Persons(shared_use_cases.people(base, uow), devices),
            OwnDevices(devices),
            StepUps(step_up, attempts),
            PersonPasskeys(passkeys, passkey_login, attempts),
            DeviceLoginOperations(device_logins, attempts),
            Hosts(Directory(uow, core.presence), pairing, Transitions(uow, core.host_sessions), Naming(uow), attempts),
            HostGrants(Grants(uow, RightLosses()), attempts),
            TerminalSessions(sessions, OwnerSessions(uow), OperatorSessions(uow)),
            AuditReading(Audit(uow, settings.identity.audit_scan)),
            Nodes(shared_use_cases.nodes(base, uow)),
            Events(core.feeds, settings.events.retry, settings.events.stall_timeout),
        ),
        PageReports(core.metrics).route(),
        *Console(settings.server.public_origins).routes(),
    ]
    handlers = dict(exception_handlers(settings.database.retry_after))
    app = Starlette(routes=routes, middleware=[Middleware(SecurityHeaders)], exception_handlers=handlers)
    app.router.redirect_slashes = False  # a path has one spelling, and an answer never sends a client elsewhere
    return app


_USED_PROBES = 4096
"""Probe tokens that a node remembers. No key: one run of the doctor takes two, and only the key store makes them."""


def _probe(base: Foundation, tokens: KeyStoreTokens, node_id: NodeId) -> EdgeProbe:
    used = UsedTokens(_USED_PROBES)

    def hold_of(token: str) -> float | None:
        try:
            return tokens.read_once(ProbeToken, token, used).hold_s
        except TokenInvalid:
            return None

    server = base.settings.server
    return EdgeProbe(
        str(node_id),
        hold_of,
        server.trusted_proxies,
        server.public_origins,
        lambda: base.clock.skew,
        server.max_probes,
    )
