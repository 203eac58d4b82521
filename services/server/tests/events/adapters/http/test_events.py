"""REST of events on a real node: the head of the answer, ids, and how a refusal looks."""

import asyncio

import httpx2 as httpx
import pytest
import pytest_asyncio

from bothy_kit.event_reader import reading
from bothy_kit.eventually import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")
NODE_SETTINGS = {"events": {"max_per_person": 1, "comment_interval": "20ms", "retry": "700ms"}}


@pytest_asyncio.fixture(loop_scope="module")
async def robin(node):
    return (await node.couple())[0]


async def test_a_stream_is_no_page_that_anybody_keeps(node, robin):
    async with reading(robin) as reader:
        assert reader.response.status_code == 200
        head = reader.response.headers
        assert head["content-type"] == "text/event-stream; charset=utf-8"
        assert head["cache-control"] == "no-store, no-transform"
        assert head["x-accel-buffering"] == "no"
        assert head["x-content-type-options"] == "nosniff"
        assert "content-length" not in head
        reset = await reader.next()
        assert (reset.event, reader.retry_ms, int(reset.id) > 0) == ("reset", 700, True)


async def test_a_quiet_stream_is_kept_by_comments(node, robin):
    async with reading(robin) as reader:
        assert [(await reader.next()).event for _ in range(2)] == ["reset", "presence"]
        reads = asyncio.create_task(reader.next())
        await eventually(lambda: reader.comments >= 2)
        reads.cancel()


async def test_too_many_streams_are_429_until_one_has_gone(node, robin):
    async with reading(robin) as reader:
        await reader.next()
        refused = await robin.rest("GET", "/events")
        assert (refused.status, refused.code, refused.headers["retry-after"]) == (429, "feed_limit", "1")

    async def there_is_room():
        async with reading(robin) as another:
            return another.response.status_code == 200

    await eventually(there_is_room)


@pytest.mark.parametrize("given", ["x", "", "-1", "1.5", "9" * 30])
async def test_an_id_that_is_none_of_ours_begins_anew(node, robin, given):
    async with reading(robin, after=given) as reader:
        assert (await reader.next()).event == "reset"


async def test_who_is_not_signed_in_is_told_nothing(robin):
    robin.access_token = "x"
    answer = await robin.rest("GET", "/events")
    assert (answer.status, answer.code) == (401, "token_invalid")


async def test_a_stream_has_no_head_without_it(robin):
    async with httpx.AsyncClient(trust_env=False) as client:
        head = {"Authorization": f"Bearer {robin.access_token}"}
        answer = await client.head(f"{robin.url}/api/v1/events", headers=head)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
