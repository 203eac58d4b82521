"""Why the relay could not be reached, in one line for a person.

An error is judged by its shape, because this package knows no socket and no TLS: ``verify_message`` is what a certificate
that is not trusted has, ``library`` what every TLS error has, and the numbers below 0 are those of the name service.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator

_WORDS = {
    errno.ECONNREFUSED: "connection refused; is the address right, and is the relay running?",
    errno.ECONNRESET: "the connection was reset; is the port right?",
    errno.EHOSTUNREACH: "there is no way to it; is this machine online?",
    errno.ENETUNREACH: "there is no way to it; is this machine online?",
}
_NO_WAY = (errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL)
_NUMBER = re.compile(r"\[Errno (-?\d+)\]")


def explain(origin: str, error: BaseException) -> str:
    """Why ``origin`` could not be reached, from the innermost reason of ``error``."""
    reason = error
    for reason in _reasons(error):
        if message := getattr(reason, "verify_message", None):
            return (
                f"the certificate of {origin} is not trusted: {message};"
                " SSL_CERT_FILE names the file of an authority of your own"
            )
    if hasattr(reason, "library"):
        return f"no TLS with {origin}: {getattr(reason, 'reason', None) or reason}; is the port right?"
    if isinstance(reason, TimeoutError):
        return f"{origin} does not answer; is the address right?"
    return f"cannot reach {origin}: {_words(reason)}"


def is_local(error: BaseException) -> bool:
    """Whether the fault is on this side: no name service, or no way out of this machine."""
    *_, reason = _reasons(error)
    number = _number(reason) if isinstance(reason, OSError) else 0
    return number < 0 or number in _NO_WAY


def _reasons(error: BaseException) -> Iterator[BaseException]:
    """From the outermost to the innermost."""
    seen: set[int] = set()
    reason: BaseException | None = error
    while reason is not None and id(reason) not in seen:
        seen.add(id(reason))
        yield reason
        if isinstance(reason, TimeoutError):
            return  # behind it stands only that the wait for something was cancelled
        reason = reason.__cause__ or reason.__context__


def _words(reason: BaseException) -> str:
    plain = str(reason) or type(reason).__name__
    if not isinstance(reason, OSError):
        return plain
    number = _number(reason)
    words = _WORDS.get(number) or reason.strerror or plain
    return f"{words}; is the address right?" if number < 0 else words


def _number(error: OSError) -> int:
    # Of a name with several addresses there is one error for all of them, and their numbers are in its text only.
    return error.errno or next((int(found) for found in _NUMBER.findall(str(error))), 0)
