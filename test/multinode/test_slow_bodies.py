"""A body may take its time; whoever is revoked meanwhile does nothing with it."""

import asyncio
import json
from urllib.parse import urlsplit

from bothy_kit.cluster import cluster

ROOM = 600
"""Bytes that are announced; a body is filled up to them with spaces."""


class SlowRequest:
    """A POST whose head is sent and read by the node now, and whose body comes later."""

    def __init__(self, device, path) -> None:
        self.device, self.path = device, path

    async def begin(self):
        url = urlsplit(self.device.url)
        self.reader, self.writer = await asyncio.open_connection(url.hostname, url.port)
        head = (
            f"POST /api/v1{self.path} HTTP/1.1",
            f"host: {url.netloc}",
            f"authorization: Bearer {self.device.access_token}",
            "content-type: application/json",
            f"content-length: {ROOM}",
            "expect: 100-continue",
            "connection: close",
        )
        self.writer.write("\r\n".join((*head, "", "")).encode())
        assert b" 100 " in await self.reader.readline(), "the node asks for the body"
        await self.reader.readline()
        return self

    async def end(self, body):
        self.writer.write(json.dumps(body).encode().ljust(ROOM))
        head, _, answer = (await self.reader.read()).partition(b"\r\n\r\n")
        self.writer.close()
        return int(head.split()[1]), json.loads(answer)


async def test_a_revoked_device_does_nothing_with_requests_that_it_began_before(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=1) as made:
        thief = await made.device("Robin")
        kept = await made.another_device("Robin")
        confirmed = await thief.step_up("manage_account")
        begun = {path: await SlowRequest(thief, path).begin() for path in ("/step-up/challenges", "/devices/invites")}
        assert (await kept.act("manage_account", f"/devices/{thief.device_id}/revoke")).status == 200
        asked = await begun["/step-up/challenges"].end({"purpose": "manage_account"})
        invited = await begun["/devices/invites"].end({"step_up_id": confirmed})
        for status, answer in (asked, invited):
            assert (status, answer["code"]) == (401, "token_invalid")
