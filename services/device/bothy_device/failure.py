"""The one exception that a person sees."""

from __future__ import annotations


class Failure(Exception):  # noqa: N818 - it is an answer for a person, not a defect
    """Ends the command. ``message`` is one line that says what to do; it is printed as ``bothy: <message>``.

    ``code`` is the server's problem code, where the server refused; ``retry_after`` the seconds that it asks us to wait.
    """

    def __init__(self, message: str, *, code: str | None = None, status: int = 1, retry_after: float = 0.0) -> None:
        """``status`` is the exit status of the command."""
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.retry_after = retry_after


class Unreachable(Failure):
    """The relay was not found, or what answered is none. ``local``: because this machine has no network."""

    def __init__(self, message: str, *, local: bool = False) -> None:
        """``message`` as for every :class:`Failure`."""
        super().__init__(message)
        self.local = local


class AnswerLost(Unreachable):
    """The way to the relay broke before its answer came: what was asked may be done, or not."""
