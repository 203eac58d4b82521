"""REST of owners and grants on a real node: shapes, and how a refusal looks."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
import pytest_asyncio

pytestmark = pytest.mark.asyncio(loop_scope="module")
NODE_SETTINGS = {"identity": {"attempt_rate": "4 per hour"}}
NOBODY = "0199aaaa-0000-7000-8000-00000000000a"
OTHERS = {"/owners": {}, "/owners/remove": {}, "/grants": {"session_user": "alex-shell"}, "/grants/revoke": {}}


@pytest_asyncio.fixture(loop_scope="module")
async def couple(node):
    """An owner and their host."""
    device, host = await node.couple()
    return device, host.host_id


@pytest_asyncio.fixture(loop_scope="module")
async def guest(node):
    """The name and a device of a person who has nothing to do with any host."""
    name = f"Sam-{uuid4().hex[:8]}"
    return name, await node.device(name)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def operator(node):
    return await node.operator(f"Alex-{uuid4().hex[:8]}")


async def test_owners_are_told_as_the_contract_says(couple, guest):
    owner, host_id = couple
    name, device = guest
    added = await owner.manage("/owners", {"person": name}, host_id=host_id)
    assert added.status == 200
    assert datetime.fromisoformat(added.body["since"]).utcoffset() == timedelta(0)
    assert UUID(added.body["person_id"]).version == 7
    assert (added.body["person_name"], added.body["disabled"]) == (name, False)
    listed = await device.rest("GET", f"/hosts/{host_id}/owners")
    assert listed.status == 200
    assert added.body in listed.body["owners"]
    assert [each["person_name"] for each in listed.body["owners"]] == sorted(
        each["person_name"] for each in listed.body["owners"]
    )
    removed = await device.manage("/owners/remove", {"person": added.body["person_id"]}, host_id=host_id)
    assert (removed.status, removed.body) == (200, {})
    assert (await device.rest("GET", f"/hosts/{host_id}")).code == "host_unknown"


async def test_grants_are_told_as_the_contract_says(couple, guest):
    owner, host_id = couple
    name, device = guest
    until = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    wanted = {"person": name, "session_user": "alex-shell", "expires_at": until}
    given = await owner.manage("/grants", wanted, host_id=host_id)
    assert given.status == 200
    assert given.body.keys() == {"person_id", "person_name", "session_user", "since", "expires_at"}
    assert datetime.fromisoformat(given.body["expires_at"]) == datetime.fromisoformat(until)
    assert (await device.rest("GET", f"/hosts/{host_id}")).body["session_users"] == ["alex-shell"]
    changed = await owner.manage("/grants", wanted | {"expires_at": None}, host_id=host_id)
    assert (changed.status, changed.body) == (200, given.body | {"expires_at": None})
    more = await owner.manage("/grants", {"person": name, "session_user": "robin-shell"}, host_id=host_id)
    listed = await owner.rest("GET", f"/hosts/{host_id}/grants")
    assert (listed.status, listed.body) == (200, {"grants": [changed.body, more.body]})
    taken = await owner.manage("/grants/revoke", {"person": name, "session_user": "robin-shell"}, host_id=host_id)
    assert (taken.status, taken.body) == (200, {})
    assert (await owner.rest("GET", f"/hosts/{host_id}/grants")).body == {"grants": [changed.body]}
    assert (await owner.manage("/grants/revoke", {"person": name}, host_id=host_id)).status == 200
    assert (await owner.rest("GET", f"/hosts/{host_id}/grants")).body == {"grants": []}


async def refusals(device, host_id, body_of):
    """What each act is answered with."""
    return {
        path: (answer.status, answer.code)
        for path, more in OTHERS.items()
        for answer in [await device.manage(path, body_of(more), host_id=host_id)]
    }


async def test_a_person_that_is_not_there_is_unknown(couple):
    owner, host_id = couple
    assert await refusals(owner, host_id, lambda more: more | {"person": "Nobody"}) == {
        "/owners": (404, "person_unknown"),
        "/owners/remove": (404, "owner_unknown"),
        "/grants": (404, "person_unknown"),
        "/grants/revoke": (404, "grant_unknown"),
    }


async def test_names_are_not_tried_by_the_thousand(node, couple, guest):
    """Whoever is here already is given a right all the same, and other owners are not held up."""
    owner, host_id = couple
    await node.admin.people.add(f"Lee-{uuid4().hex[:8]}", is_operator=False)
    for path, more in (("/owners", {}), ("/grants", {"session_user": "alex-shell"})) * 2:
        answer = await owner.manage(path, more | {"person": "Nobody"}, host_id=host_id)
        assert (answer.status, answer.code) == (404, "person_unknown")
    for path, more in (("/owners", {}), ("/grants", {"session_user": "alex-shell"})):
        answer = await owner.manage(path, more | {"person": "Nobody"}, host_id=host_id)
        assert (answer.status, answer.code) == (429, "rate_limited")
        assert int(answer.headers["retry-after"]) > 0
        assert (await owner.manage(path, more | {"person": guest[0]}, host_id=host_id)).status == 200
    other, host = await node.couple()
    answer = await other.manage("/owners", {"person": "Nobody"}, host_id=host.host_id)
    assert answer.code == "person_unknown"


async def test_a_person_who_never_signed_in_is_given_nothing(node, couple):
    owner, host_id = couple
    name = f"Sam-{uuid4().hex[:8]}"
    await node.admin.people.add(name, is_operator=False)
    for path, more in (("/owners", {}), ("/grants", {"session_user": "alex-shell"})):
        answer = await owner.manage(path, more | {"person": name}, host_id=host_id)
        assert (answer.status, answer.code) == (409, "person_without_device")


async def test_an_operator_only_takes_away(node, couple, guest, operator):
    owner, host_id = couple
    name, _ = guest
    assert await refusals(operator, host_id, lambda more: more | {"person": name}) == {
        "/owners": (403, "owner_required"),
        "/owners/remove": (404, "owner_unknown"),
        "/grants": (403, "owner_required"),
        "/grants/revoke": (404, "grant_unknown"),
    }
    for path in ("/owners", "/grants"):
        assert (await operator.rest("GET", f"/hosts/{host_id}{path}")).status == 200
    confirmation = await operator.manage("/confirm", {"fingerprint": "SHA256:x"}, host_id=host_id)
    assert (confirmation.status, confirmation.code) == (403, "owner_required")
    assert (await owner.manage("/owners", {"person": name}, host_id=host_id)).status == 200
    assert (await operator.manage("/owners/remove", {"person": name}, host_id=host_id)).status == 200


async def test_the_last_owner_stays(couple):
    owner, host_id = couple
    ((only,),) = [(await owner.rest("GET", f"/hosts/{host_id}/owners")).body["owners"]]
    answer = await owner.manage("/owners/remove", {"person": only["person_id"]}, host_id=host_id)
    assert (answer.status, answer.code) == (409, "last_owner")


async def test_without_its_own_confirmation_nothing_is_done(couple, guest):
    owner, host_id = couple
    name, device = guest
    for path, more in (("/owners", {}), ("/grants", {"session_user": "alex-shell"})):
        answer = await owner.rest("POST", f"/hosts/{host_id}{path}", more | {"person": name, "step_up_id": NOBODY})
        assert (answer.status, answer.code) == (401, "step_up_required")
        assert (await owner.manage(path, more | {"person": name}, host_id=host_id)).status == 200
    for path in ("/owners/remove", "/grants/revoke"):
        answer = await owner.rest("POST", f"/hosts/{host_id}{path}", {"person": name, "step_up_id": NOBODY})
        assert (answer.status, answer.code) == (401, "step_up_required")
    assert (await device.rest("GET", f"/hosts/{host_id}")).body["owner"] is True


async def test_an_end_that_has_passed_and_a_name_that_cannot_be_are_refused(couple, guest):
    owner, host_id = couple
    wanted = {"person": guest[0], "session_user": "alex-shell"}
    passed = await owner.manage("/grants", wanted | {"expires_at": "2026-01-01T00:00:00Z"}, host_id=host_id)
    assert (passed.status, passed.code) == (422, "expiry_past")
    named = await owner.manage("/grants", wanted | {"session_user": "\u00e9" * 33}, host_id=host_id)
    assert (named.status, named.code) == (422, "name_invalid")


@pytest.mark.parametrize(
    "more",
    [
        {"expires_at": "2036-01-01T00:00:00"},
        {"expires_at": "tomorrow"},
        {"expires_at": 1},
        {"session_user": ""},
        {"session_user": "a\u0000b"},
        {"person": ""},
        {"right": "terminal"},
    ],
)
async def test_a_grant_that_is_none_is_refused(couple, guest, more):
    owner, host_id = couple
    body = {"person": guest[0], "session_user": "alex-shell", "step_up_id": NOBODY} | more
    answer = await owner.rest("POST", f"/hosts/{host_id}/grants", body)
    assert (answer.status, answer.code) == (400, "body_invalid")


@pytest.mark.parametrize("host_id", [NOBODY, NOBODY.upper(), "x", None])
async def test_a_host_that_is_not_there_or_not_ones_own_is_unknown_on_every_path(couple, guest, host_id):
    name, stranger = guest
    where = f"/hosts/{host_id or couple[1]}"
    for path, more in OTHERS.items():
        answer = await stranger.rest("POST", where + path, more | {"person": name, "step_up_id": NOBODY})
        assert (answer.status, answer.code) == (404, "host_unknown")
    for path in ("/owners", "/grants"):
        answer = await stranger.rest("GET", where + path)
        assert (answer.status, answer.code) == (404, "host_unknown")
