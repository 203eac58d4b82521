"""REST of events: what the caller may see, as it happens."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial

from bothy_server.events.app.feed import Told
from bothy_server.events.app.feeds import Feeds
from bothy_server.platform.operations import Call, operation
from bothy_server.platform.server_sent_events import EventStream, ServerSentEvent

_POSITION = re.compile(r"[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Events:
    """What happens, told while it happens."""

    feeds: Feeds
    retry: float
    patience: float

    @operation("GET", "/api/v1/events", refuses={429: ("feed_limit",), 503: ("node_leaving",)})
    async def follow_events(self, call: Call[None]) -> EventStream:
        """Server-sent events of what the caller may see: own sessions, hosts with a right, everything to an operator.

        With `Last-Event-ID` they go on where another stream, of any node, ended. The event `reset` says that something may
        have been missed: read everything anew.
        """
        feed = self.feeds.open(call.caller)
        blocks = _blocks(self.feeds.follow(feed, _position(call.last_event_id)))
        return EventStream(
            events=blocks, retry=self.retry, patience=self.patience, ended=partial(self.feeds.close, feed)
        )


def _position(last_event_id: str | None) -> int | None:
    """Where to go on. What is no id of ours cannot be continued: everything is read anew."""
    return int(last_event_id) if last_event_id and _POSITION.fullmatch(last_event_id) else None


async def _blocks(told: AsyncIterator[Told]) -> AsyncIterator[ServerSentEvent]:
    async for each in told:
        position = None if each.position is None else str(each.position)
        yield ServerSentEvent(event=each.type, data=each.data, id=position)
