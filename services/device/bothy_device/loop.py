"""The event loop of the commands: looking up a name never holds up the end."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from typing import Any


class Loop(asyncio.SelectorEventLoop):
    """The standard loop looks names up in threads that the program waits for when it ends.

    A name service that is out of reach takes many seconds to say so, and who gave up does not want to wait for that.
    """

    async def getaddrinfo(
        self,
        host: Any,
        port: Any,
        *,
        family: int = 0,
        type: int = 0,  # noqa: A002 - the name that callers know
        proto: int = 0,
        flags: int = 0,
    ) -> Any:
        """As ``socket.getaddrinfo``, in a thread that nobody waits for."""
        found: asyncio.Future[Any] = self.create_future()

        def finish(answer: Any, error: Exception | None) -> None:
            if not found.done():
                if error is None:
                    found.set_result(answer)
                else:
                    found.set_exception(error)

        def look_up() -> None:
            answer, failed = None, None
            try:
                answer = socket.getaddrinfo(host, port, family, type, proto, flags)
            except (OSError, UnicodeError) as error:
                failed = error
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody asks any more
                self.call_soon_threadsafe(finish, answer, failed)

        threading.Thread(target=look_up, daemon=True).start()
        return await found
