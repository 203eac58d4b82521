"""The example of ``docs/operations/tls.md`` as nginx runs it, with TLS, in front of the example edge."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from bothy_kit.edge_client import UPGRADE, Stream, ask
from bothy_kit.nginx import edge
from bothy_kit.responder import responders
from bothy_server.platform.settings import Terminal
from bothy_wire.limits import CONTROL_PATH, data_path, stream_path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations" / "tls.md"
NAME = "relay.example.com"
ID = "0190a0b0-c1d2-7e3f-8a4b-5c6d7e8f9a0b"
TERMINAL = Terminal()


def example() -> str:
    """The block of the page."""
    block = re.search(r"^```nginx\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert block is not None
    return block[1]


def certificate(folder: Path) -> None:
    """A certificate that trusts itself, with its key, for :data:`NAME`."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "tls.pem").write_bytes(made.public_bytes(Encoding.PEM))
    (folder / "tls.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


@contextmanager
def in_front(inner: str, folder: Path) -> Iterator[str]:
    """nginx with the example of the page in front of the edge at ``inner``; its address."""
    certificate(folder)

    def as_on_the_page(own: Path) -> None:
        address = (own / "listen.conf").read_text().removeprefix("listen ").rstrip(";\n")
        block = example()
        for written, meant in (
            ("listen 443 ssl", f"listen {address} ssl"),
            ("/etc/ssl/relay.example.com.pem", str(own / "tls.pem")),
            ("/etc/ssl/relay.example.com.key", str(own / "tls.key")),
            ("http://127.0.0.1:8090", inner),
        ):
            assert block.count(written) == 1, written
            block = block.replace(written, meant)
        for name in ("tls.pem", "tls.key"):
            (own / name).write_bytes((folder / name).read_bytes())
        head, _, _ = (own / "nginx.conf").read_text().partition("    # The session of a stream path")
        (own / "nginx.conf").write_text(f"{head}{block}}}\n")

    with edge([("api", "127.0.0.1", 1)], edit=as_on_the_page) as url:
        yield url


@asynccontextmanager
async def through_tls(url: str, folder: Path) -> AsyncIterator[Stream]:
    trust = ssl.create_default_context(cafile=str(folder / "tls.pem"))
    at = urlsplit(url)
    reader, writer = await asyncio.open_connection(at.hostname, at.port, ssl=trust, server_hostname=NAME)
    try:
        yield reader, writer
    finally:
        writer.close()


async def test_the_example_passes_sockets_and_says_who_called(tmp_path: Path) -> None:
    async with responders("api-1", "api-2") as nodes:
        with edge([node.node for node in nodes]) as inner, in_front(inner, tmp_path) as url:
            for path in (stream_path(ID), data_path(ID), CONTROL_PATH):
                async with through_tls(url, tmp_path) as (reader, writer):
                    status, _ = await ask((reader, writer), path, {**UPGRADE, "X-Forwarded-For": "192.0.2.7"})
                    assert status == 101
                    sent = bytes(200_000)
                    writer.write(sent)
                    assert await reader.readexactly(len(sent)) == sent
        for request in (request for node in nodes for request in node.requests):
            assert request.headers["x-forwarded-for"] == "192.0.2.7, 127.0.0.1, 127.0.0.1"
            assert request.headers["x-forwarded-proto"] == "https"
            assert request.headers["host"] == "bothy.example.com:8443"


@pytest.mark.parametrize(
    "path", [f"/{stream_path(ID)}", f"{data_path(ID)}/", stream_path(ID.replace("a", "%61")), data_path(ID.upper())]
)
async def test_the_example_leaves_the_path_to_the_edge(path: str, tmp_path: Path) -> None:
    async with responders("api-1", "api-2") as nodes:
        with edge([node.node for node in nodes]) as inner, in_front(inner, tmp_path) as url:
            async with through_tls(url, tmp_path) as stream:
                assert (await ask(stream, path, UPGRADE))[0] == 400
        assert [node.requests for node in nodes] == [[], []]


def test_the_numbers_of_the_page_are_the_defaults_of_the_server() -> None:
    longest = f"{TERMINAL.idle_timeout + TERMINAL.idle_grace:.0f}"
    assert re.findall(r"proxy_(?:read|send)_timeout (\d+)s;", example()) == [longest, longest]
    assert f"({longest} s by default)" in PAGE.read_text()
