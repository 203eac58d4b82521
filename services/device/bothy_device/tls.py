"""Whom to trust: the system's authorities, or those that ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` name."""

from __future__ import annotations

import ssl


def context(origin: str) -> ssl.SSLContext | None:
    """The context for a server; ``None`` where it is reached without TLS."""
    return ssl.create_default_context() if origin.startswith("https:") else None


def explain(origin: str, error: BaseException) -> str:
    """Why ``origin`` could not be reached, from the innermost reason of ``error``."""
    reason: BaseException = error
    seen = {id(error)}
    while (inner := reason.__cause__ or reason.__context__) is not None and id(inner) not in seen:
        seen.add(id(inner))
        reason = inner
        if isinstance(reason, ssl.SSLCertVerificationError):
            return (
                f"the certificate of {origin} is not trusted: {reason.verify_message};"
                " SSL_CERT_FILE names the file of an authority of your own"
            )
    if isinstance(reason, ssl.SSLError):
        return f"no TLS with {origin}: {reason.reason or reason}; is the port right?"
    if isinstance(reason, TimeoutError):
        return f"{origin} does not answer; is the address right?"
    words = (reason.strerror if isinstance(reason, OSError) else None) or str(reason) or type(reason).__name__
    return f"cannot reach {origin}: {words}"
