"""What browsers report of a page that broke its Content-Security-Policy: counted by directive, and nothing of it is kept.

Anybody can send such a report, so it proves nothing and is bounded: its size, what is read of it (the name of a
directive, from a closed list), and what is logged (that name, at ``log.repeat_rate``). A report also holds addresses and
pieces of pages, which no log is to have.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bothy_server.platform.http import read_body
from bothy_server.platform.telemetry import Metrics

REPORTS_PATH = "/csp-reports"
DIRECTIVES = (
    "base-uri",
    "connect-src",
    "default-src",
    "font-src",
    "form-action",
    "frame-ancestors",
    "frame-src",
    "img-src",
    "manifest-src",
    "media-src",
    "object-src",
    "require-trusted-types-for",
    "script-src",
    "script-src-attr",
    "script-src-elem",
    "style-src",
    "style-src-attr",
    "style-src-elem",
    "trusted-types",
    "worker-src",
)
_OTHER = "other"
"""A directive that is not in the list, and what is no report."""
_MOST_BYTES = 16 * 1024
"""No key: browsers cut what they quote, and a longer report is none of ours."""

_log = logging.getLogger(__name__)


class PageReports:
    """Takes reports, in both forms that browsers send."""

    def __init__(self, metrics: Metrics) -> None:
        """Counts there."""
        named = {"bothy.page.directive": (*DIRECTIVES, _OTHER)}
        self._counter = metrics.counter("bothy.page.reports", "Reports of broken page policies", named)

    def route(self) -> Route:
        """Its path."""
        return Route(REPORTS_PATH, self._answer, methods=["POST"])

    async def _answer(self, request: Request) -> Response:
        for directive in set(_directives(await read_body(request, _MOST_BYTES))):
            self._counter.add(directive)
            _log.warning("page policy broken", extra={"bothy.page.directive": directive})
        return Response(status_code=204)


def _directives(body: bytes) -> Iterator[str]:
    """The directives that a body names. What is no report names an unknown one: it is counted, too."""
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        decoded = None
    for report in decoded if isinstance(decoded, list) and decoded else [decoded]:
        yield _directive(report)


def _directive(report: Any) -> str:
    match report:
        case {"csp-report": {"effective-directive": str(named)}} | {"csp-report": {"violated-directive": str(named)}}:
            pass
        case {"type": "csp-violation", "body": {"effectiveDirective": str(named)}}:
            pass
        case _:
            return _OTHER
    directive = named.partition(" ")[0]
    return directive if directive in DIRECTIVES else _OTHER
