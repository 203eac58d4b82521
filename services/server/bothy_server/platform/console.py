"""The console's files, as its build left them beside the package (``console_dist``), for browsers.

All of them are read once, at the start: they are few, and what a node serves stays of one build. A name that holds a hash
of its content may be kept for ever; the page that names it may not. The build puts compressed forms beside a file
(``NAME.br``, ``NAME.gz``), which are answers to the same name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from bothy_server.platform.page_reports import REPORTS_PATH

BUILT = Path(__file__).parent.parent / "console_dist"
"""Where the build leaves the files and the wheel carries them."""

_PAGE = "index.html"
_ASSETS = "assets"
_HASHED = re.compile(r".+-[0-9A-Z]{8}\.\w+")
_FOREVER = {"cache-control": "public, max-age=31536000, immutable"}
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
"""What may be served at all. A table of our own: the system's differs from machine to machine."""
_ENCODINGS = {"br": ".br", "gzip": ".gz"}
"""By preference: the smaller one first."""
_NOT_BUILT = """\
This server has no console: it runs from a checkout in which the console was not built.
`make console` builds it; start the server again after it. The wheel always has it.
"""


@dataclass(frozen=True, slots=True)
class _File:
    """A file by content encoding; the empty one is the file itself."""

    media_type: str
    forms: Mapping[str, bytes]


class Console:
    """Serves the page at ``/`` and its files at ``/assets/NAME``; there is nothing else, whatever a path looks like."""

    def __init__(self, origins: Sequence[str], built: Path = BUILT) -> None:
        """``origins`` is the key ``server.public_origins``: where the page's sockets lead."""
        self._page = _read(built / _PAGE) if (built / _PAGE).is_file() else None
        self._assets = dict(_read_all(built / _ASSETS)) if self._page is not None else {}
        self._page_headers = _page_headers(origins)

    def routes(self) -> list[Route]:
        """Both paths."""
        return [Route("/", self._answer_page), Route(f"/{_ASSETS}/{{name}}", self._answer_asset)]

    async def _answer_page(self, request: Request) -> Response:
        if self._page is None:
            return PlainTextResponse(_NOT_BUILT, 404)
        return _response(request, self._page, self._page_headers)

    async def _answer_asset(self, request: Request) -> Response:
        name = request.path_params["name"]
        asset = self._assets.get(name)
        if asset is None:
            raise HTTPException(404)
        return _response(request, asset, _FOREVER if _HASHED.fullmatch(name) else {})


def _page_headers(origins: Sequence[str]) -> dict[str, str]:
    # For browsers in which 'self' means https and not the wss of the same host.
    sockets = [f"ws{origin.removeprefix('http')}" for origin in origins]
    policy = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "connect-src": " ".join(["'self'", *sockets]),
        "img-src": "'self' data:",
        "font-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
        "report-uri": REPORTS_PATH,
    }
    return {
        "cache-control": "no-store",
        "content-security-policy": "; ".join(f"{name} {sources}" for name, sources in policy.items()),
        "cross-origin-opener-policy": "same-origin",
        "permissions-policy": _PERMISSIONS,
    }


_OWN = ("clipboard-read", "clipboard-write", "publickey-credentials-create", "publickey-credentials-get")
_NOBODYS = ("camera", "display-capture", "geolocation", "hid", "microphone", "midi", "payment", "serial", "usb")
_PERMISSIONS = ", ".join([*(f"{name}=(self)" for name in _OWN), *(f"{name}=()" for name in _NOBODYS)])


def _read_all(folder: Path) -> Iterator[tuple[str, _File]]:
    for path in sorted(folder.iterdir()):
        if path.suffix in _TYPES:
            yield path.name, _read(path)


def _read(path: Path) -> _File:
    beside = {encoding: path.with_name(path.name + suffix) for encoding, suffix in _ENCODINGS.items()}
    forms = {encoding: each.read_bytes() for encoding, each in beside.items() if each.is_file()}
    return _File(_TYPES[path.suffix], {**forms, "": path.read_bytes()})


def _response(request: Request, file: _File, headers: Mapping[str, str]) -> Response:
    accepted = _accepted(request.headers.get("accept-encoding", ""))
    encoding = next((each for each in file.forms if each in accepted), "")
    response = Response(file.forms[encoding], headers=dict(headers), media_type=file.media_type)
    response.headers["vary"] = "accept-encoding"
    if encoding:
        response.headers["content-encoding"] = encoding
    return response


def _accepted(header: str) -> set[str]:
    """The encodings that are named and not ruled out. Browsers name each; a wildcard is left unused."""
    named = (each.replace(" ", "").partition(";q=") for each in header.lower().split(","))
    return {name for name, _, weight in named if not weight or weight.strip("0.")}
