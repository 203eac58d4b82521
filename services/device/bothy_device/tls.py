"""Whom to trust: the system's authorities, or those that ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` name."""

from __future__ import annotations

import ssl


def context(origin: str) -> ssl.SSLContext | None:
    """The context for a server; ``None`` where it is reached without TLS."""
    return ssl.create_default_context() if origin.startswith("https:") else None
