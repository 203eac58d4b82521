"""Owners give, owners and operators take away, and what a right carried ends with it."""

import asyncio
from datetime import timedelta

import pytest

from bothy_server.identity.app.api import Act, right_of
from bothy_server.identity.app.grants import Grants, GrantStore
from bothy_server.identity.domain.rights import Right
from bothy_server.kernel.ids import new_id
from bothy_server.kernel.problems import Problem
from bothy_server.terminal.app.ports import SessionStore
from bothy_server.terminal.app.right_losses import RightLosses
from bothy_server.terminal.domain.session import SessionState

HOUR = timedelta(hours=1)
GUEST = Right(owner=False, session_users=frozenset({"alex-shell"}))


@pytest.fixture
def grants(rows):
    return Grants(rows.uow, RightLosses())


@pytest.fixture
async def owner(rows):
    return await rows.device()


@pytest.fixture
async def guest(rows):
    return await rows.device()


@pytest.fixture
async def operator(rows):
    return await rows.device(operator=True)


@pytest.fixture
async def host(rows, owner):
    return await rows.host(owner)


async def name_of(rows, device):
    ((name,),) = await rows.run("SELECT name FROM persons WHERE id = :id", id=device.person_id)
    return name


async def disable(rows, device):
    await rows.run("UPDATE persons SET disabled_at = now() WHERE id = :id", id=device.person_id)


async def right(rows, device, host):
    async with rows.uow() as unit:
        return await right_of(unit, device.person_id, host.id)


async def refusal(rows, attempt):
    """The code of a refusal that left nothing behind."""
    before = await rows.content()
    with pytest.raises(Problem) as raised:
        await attempt
    assert await rows.content() == before
    return raised.value.status, raised.value.code


class Acts:
    """The acts on one host, each with a fresh step-up of its own unless one is given."""

    def __init__(self, rows, grants, host):
        self.rows, self.grants, self.host = rows, grants, host

    async def confirmed(self, device, options):
        return options.pop("step_up_id", None) or await self.rows.managing(device, self.host.id)

    async def own(self, by, whom, **options):
        step_up_id = await self.confirmed(by, options)
        return await self.grants.add_owner(by.caller, self.host.id, str(whom.person_id), step_up_id)

    async def disown(self, by, whom, **options):
        step_up_id = await self.confirmed(by, options)
        await self.grants.remove_owner(by.caller, self.host.id, str(whom.person_id), step_up_id)

    async def give(self, by, whom, session_user="alex-shell", until=None, **options):
        step_up_id = await self.confirmed(by, options)
        whose = str(whom.person_id)
        return await self.grants.grant(by.caller, self.host.id, whose, session_user, until, step_up_id)

    async def take(self, by, whom, session_user="alex-shell", **options):
        step_up_id = await self.confirmed(by, options)
        await self.grants.revoke(by.caller, self.host.id, str(whom.person_id), session_user, step_up_id)


@pytest.fixture
def acts(rows, grants, host):
    return Acts(rows, grants, host)


# ---- giving ---------------------------------------------------------------------------------------------------------


async def test_an_owner_lets_a_person_in(rows, grants, acts, owner, guest, host):
    made = await acts.give(owner, guest)
    assert (made.person_id, made.session_user, made.expires_at) == (guest.person_id, "alex-shell", None)
    assert made.person_name == await name_of(rows, guest)
    assert await right(rows, guest, host) == GUEST
    assert await grants.grants(owner.caller, host.id) == [made]
    entry = {"person_id": owner.person_id, "device_id": owner.id, "subject_person_id": guest.person_id}
    assert await rows.audit(host_id=host.id, **entry) == [("host.grant", "given")]
    assert await rows.events(host_id=host.id, person_id=guest.person_id) == ["rights.changed"]


async def test_an_owner_makes_another_one(rows, grants, acts, owner, guest, host):
    made = await acts.own(owner, guest)
    assert (made.person_id, made.person_name, made.usable) == (guest.person_id, await name_of(rows, guest), True)
    assert await right(rows, guest, host) == Right(owner=True)
    assert {each.person_id for each in await grants.owners(guest.caller, host.id)} == {
        owner.person_id,
        guest.person_id,
    }
    assert await rows.audit(host_id=host.id, subject_person_id=guest.person_id) == [("host.owner", "added")]
    before = await rows.content()
    again = await grants.add_owner(owner.caller, host.id, str(guest.person_id))
    assert again == made
    assert await rows.content() == before, "an owner is made once"


async def test_a_grant_given_again_has_another_end(rows, acts, owner, guest, host, grants):
    until = rows.clock.now() + HOUR
    assert (await acts.give(owner, guest, until=until)).expires_at == until
    assert (await acts.give(owner, guest, until=until + HOUR)).expires_at == until + HOUR
    before = await rows.content()
    same = await grants.grant(owner.caller, host.id, str(guest.person_id), "alex-shell", until + HOUR)
    assert same.expires_at == until + HOUR
    assert await rows.content() == before, "the same end changes nothing"
    assert (await acts.give(owner, guest)).expires_at is None
    assert await rows.audit(subject_person_id=guest.person_id) == [
        ("host.grant", "given"),
        ("host.grant", "changed"),
        ("host.grant", "changed"),
    ]


async def test_a_grant_for_another_user_is_another_one(rows, acts, owner, guest, host):
    await acts.give(owner, guest)
    await acts.give(owner, guest, "robin-shell")
    assert (await right(rows, guest, host)).session_users == {"alex-shell", "robin-shell"}


async def test_an_end_that_has_passed_is_refused(rows, acts, owner, guest):
    """By the database's clock, whatever this node's says."""
    rows.clock.advance(-7200)
    for passed in (timedelta(0), -HOUR):
        unspent = await rows.managing(owner, acts.host.id)
        until = rows.clock.now() + passed
        assert await refusal(rows, acts.give(owner, guest, until=until, step_up_id=unspent)) == (422, "expiry_past")
    unspent = await rows.managing(owner, acts.host.id)
    assert await refusal(rows, acts.give(owner, guest, "a\nb", step_up_id=unspent)) == (422, "name_invalid")


async def test_a_grant_that_is_over_is_not_listed_and_forgotten(rows, grants, acts, owner, guest, host):
    await acts.give(owner, guest, until=rows.clock.now() + HOUR)
    await acts.give(owner, guest, "robin-shell", until=rows.clock.now() + HOUR)
    await rows.run(
        "UPDATE host_grants SET expires_at = now() WHERE host_id = :id AND \"session_user\" = 'alex-shell'", id=host.id
    )
    assert [each.session_user for each in await grants.grants(owner.caller, host.id)] == ["robin-shell"]
    unspent = await rows.managing(owner, host.id)
    assert await refusal(rows, acts.take(owner, guest, step_up_id=unspent)) == (404, "grant_unknown")
    async with rows.uow() as unit:
        assert await unit.of(GrantStore).prune() == 1
    assert await rows.run('SELECT "session_user" FROM host_grants WHERE host_id = :id', id=host.id) == [
        ("robin-shell",)
    ]
    assert (await acts.give(owner, guest)).expires_at is None


# ---- persons --------------------------------------------------------------------------------------------------------


async def test_a_person_is_named_by_id_or_exact_name(rows, grants, owner, guest, host):
    name = await name_of(rows, guest)
    made = await grants.grant(None, host.id, name, "alex-shell", None)
    assert made.person_id == guest.person_id
    before = await rows.content()
    with pytest.raises(Problem) as unknown:
        await grants.grant(None, host.id, rows.name("nobody"), "alex-shell", None)
    await disable(rows, guest)
    before = await rows.content()
    with pytest.raises(Problem) as disabled:
        await grants.grant(None, host.id, name, "alex-shell", None)
    answers = [(each.value.status, each.value.code, each.value.detail) for each in (unknown, disabled)]
    assert answers[0][:2] == (404, "person_unknown")
    assert answers[0] == answers[1], "one answer"
    for spelling in (name.upper(), str(guest.person_id), str(owner.person_id).upper(), f"{{{owner.person_id}}}", ""):
        for attempt in (
            grants.grant(None, host.id, spelling, "alex-shell", None),
            grants.add_owner(None, host.id, spelling),
        ):
            assert await refusal(rows, attempt) == (404, "person_unknown")
    assert await rows.content() == before


async def test_nobody_gives_a_right_to_who_never_signed_in(rows, grants, acts, owner, host):
    """Whoever gets their invite would have it, an operator too."""
    person_id = await rows.person()
    for attempt in (
        grants.add_owner(owner.caller, host.id, str(person_id), await rows.managing(owner, host.id)),
        grants.grant(owner.caller, host.id, str(person_id), "alex-shell", None, await rows.managing(owner, host.id)),
    ):
        assert await refusal(rows, attempt) == (409, "person_without_device")
    assert (await grants.grant(None, host.id, str(person_id), "alex-shell", None)).person_id == person_id
    device = await rows.device()
    await rows.run("UPDATE devices SET revoked_at = now() WHERE id = :id", id=device.id)
    await acts.give(owner, device)


async def test_an_id_is_that_persons_also_when_another_one_is_called_so(rows, grants, guest, host):
    impostor = await rows.device()
    await rows.run("UPDATE persons SET name = :name WHERE id = :id", name=str(guest.person_id), id=impostor.person_id)
    made = await grants.grant(None, host.id, str(guest.person_id), "alex-shell", None)
    assert made.person_id == guest.person_id
    await grants.grant(None, host.id, str(impostor.person_id), "alex-shell", None)
    await grants.revoke(None, host.id, str(guest.person_id), None)
    assert [each.person_id for each in await grants.grants(None, host.id)] == [impostor.person_id]


async def test_a_disabled_person_can_be_taken_everything(rows, grants, acts, owner, guest, host):
    await acts.own(owner, guest)
    await acts.give(owner, guest)
    await disable(rows, guest)
    assert [
        each.usable for each in await grants.owners(owner.caller, host.id) if each.person_id == guest.person_id
    ] == [False]
    await acts.disown(owner, guest)
    await acts.take(owner, guest)
    assert await right(rows, guest, host) is None


# ---- taking ---------------------------------------------------------------------------------------------------------


async def test_a_grant_that_is_taken_ends_what_it_carried_in_the_same_unit(rows, acts, owner, guest, host):
    await acts.give(owner, guest)
    carried = [await rows.session(guest, host, each) for each in list(SessionState)[:3]]
    others = [await rows.session(owner, host), await rows.session(guest, await rows.host(guest))]
    await acts.take(owner, guest)
    assert await right(rows, guest, host) is None
    for session in carried:
        assert (await rows.record(session.id)).close_reason == "revoked"
        assert await rows.audit(session_id=session.id) == [("terminal.terminate", "revoked")]
        assert await rows.events(session_id=session.id) == ["terminal_session.changed"]
    assert [await rows.record(each.id) for each in others] == others
    assert (await rows.audit(host_id=host.id, subject_person_id=guest.person_id))[-1] == ("host.grant", "revoked")


async def test_what_another_right_carries_goes_on(rows, acts, owner, guest, host):
    await acts.give(owner, guest)
    await acts.give(owner, guest, "robin-shell")
    await acts.own(owner, guest)
    session = await rows.session(guest, host, SessionState.ACTIVE)
    await acts.take(owner, guest, None)
    assert await rows.record(session.id) == session, "they own the host"
    await acts.give(owner, guest)
    await acts.disown(owner, guest)
    assert await rows.record(session.id) == session, "they hold a grant for this user"
    await acts.give(owner, guest, "robin-shell")
    await acts.take(owner, guest, "robin-shell")
    assert await rows.record(session.id) == session, "it was another user's"
    await acts.take(owner, guest)
    assert (await rows.record(session.id)).close_reason == "revoked"


async def test_all_grants_of_a_person_go_at_once(rows, grants, acts, owner, guest, host):
    other = await rows.device()
    await acts.give(owner, other)
    for session_user in ("alex-shell", "robin-shell"):
        await acts.give(owner, guest, session_user)
    await acts.take(owner, guest, None)
    assert [each.person_id for each in await grants.grants(owner.caller, host.id)] == [other.person_id]


async def test_an_owner_that_is_removed_has_no_session_any_more(rows, acts, owner, guest, host):
    await acts.own(owner, guest)
    session = await rows.session(guest, host, SessionState.DETACHED)
    await acts.disown(guest, guest)
    assert await right(rows, guest, host) is None
    assert (await rows.record(session.id)).close_reason == "revoked"
    assert (await rows.audit(host_id=host.id, subject_person_id=guest.person_id))[-1] == ("host.owner", "removed")


async def test_the_last_owner_who_can_decide_stays(rows, acts, owner, guest):
    unspent = await rows.managing(owner, acts.host.id)
    assert await refusal(rows, acts.disown(owner, owner, step_up_id=unspent)) == (409, "last_owner")
    await acts.own(owner, guest)
    await disable(rows, guest)
    assert await refusal(rows, acts.disown(owner, owner, step_up_id=unspent)) == (409, "last_owner")


async def test_two_owners_who_remove_each_other_at_once_do_not_leave_the_host_alone(rows, grants, acts, owner, guest):
    await acts.own(owner, guest)
    outcomes = await asyncio.gather(acts.disown(owner, guest), acts.disown(guest, owner), return_exceptions=True)
    assert len(await grants.owners(None, acts.host.id)) == 1
    assert sorted(getattr(each, "code", "removed") for each in outcomes) == ["host_unknown", "removed"]


async def test_a_session_that_begins_while_its_right_is_taken_is_never_paired(rows, acts, owner, guest, host):
    """It waits for the decision behind its foreign key, and at its first pairing the right is gone."""
    await acts.give(owner, guest)
    async with rows.uow() as unit:
        await unit.of(GrantStore).hold(host.id)
        await unit.of(GrantStore).remove_grants(guest.person_id, host.id, None)
        await RightLosses().right_lost(unit, guest.person_id, host.id)
        late = asyncio.create_task(rows.session(guest, host))
        await rows.blocked()
    session = await late
    async with rows.uow() as unit:
        assert (await unit.of(SessionStore).pair(session.id, 1)).outcome == "denied"


async def test_a_device_that_is_revoked_meanwhile_lets_nobody_in(rows, acts, owner, guest):
    """Its request began before, and its confirmation is good."""
    given = [(acts.give, guest), (acts.own, guest)]
    unspent = await rows.managing(owner, acts.host.id)
    await rows.run("UPDATE devices SET revoked_at = now() WHERE id = :id", id=owner.id)
    for act, whom in given:
        assert await refusal(rows, act(owner, whom, step_up_id=unspent)) == (401, "token_invalid")


async def test_a_revocation_waits_for_an_act_that_has_begun(rows, acts, owner, guest, host):
    confirmed = await rows.managing(owner, host.id)
    async with rows.uow() as unit:
        await unit.of(GrantStore).hold(host.id)
        act = asyncio.create_task(acts.give(owner, guest, step_up_id=confirmed))
        await rows.blocked()
        revoked = asyncio.create_task(rows.run("UPDATE devices SET revoked_at = now() WHERE id = :id", id=owner.id))
    assert (await act).person_id == guest.person_id
    await revoked


# ---- who may --------------------------------------------------------------------------------------------------------


async def test_an_operator_takes_away_and_gives_nothing(rows, grants, acts, owner, guest, operator, host):
    await acts.give(owner, guest)
    await acts.own(owner, guest)
    for attempt in (acts.own, acts.give):
        unspent = await rows.managing(operator, host.id)
        for whom in (operator, guest, await rows.device()):
            assert await refusal(rows, attempt(operator, whom, step_up_id=unspent)) == (403, "owner_required")
    assert len(await grants.owners(operator.caller, host.id)) == 2
    assert len(await grants.grants(operator.caller, host.id)) == 1
    await acts.disown(operator, guest)
    await acts.take(operator, guest)
    assert await right(rows, guest, host) is None
    assert await right(rows, operator, host) is None


async def test_to_others_there_is_no_such_host(rows, grants, acts, owner, guest, host):
    await acts.give(owner, guest)
    stranger, elsewhere = await rows.device(), Acts(rows, grants, await rows.host(guest))
    for device in (guest, stranger):
        unspent = await rows.managing(device, host.id)
        for attempt in (
            grants.owners(device.caller, host.id),
            grants.grants(device.caller, host.id),
            acts.own(device, device, step_up_id=unspent),
            acts.disown(device, owner, step_up_id=unspent),
            acts.give(device, device, "robin-shell", step_up_id=unspent),
            acts.take(device, guest, step_up_id=unspent),
        ):
            assert await refusal(rows, attempt) == (404, "host_unknown")
    nowhere = new_id(rows.clock.now())
    for attempt in (
        grants.grant(owner.caller, nowhere, str(guest.person_id), "alex-shell", None),
        grants.add_owner(None, nowhere, str(guest.person_id)),
        elsewhere.give(owner, owner, step_up_id=nowhere),
    ):
        assert await refusal(rows, attempt) == (404, "host_unknown")


@pytest.mark.parametrize("act", ["own", "disown", "give", "take"])
async def test_each_act_spends_a_fresh_step_up_of_this_host_once(rows, acts, owner, guest, act):
    third = await rows.device()
    await acts.own(owner, third)
    if act == "take":
        await acts.give(owner, third)
    other = await rows.host(owner)
    expired = await rows.managing(owner, acts.host.id)
    await rows.run("UPDATE step_ups SET expires_at = now() WHERE id = :id", id=expired)
    useless = (
        new_id(rows.clock.now()),
        expired,
        await rows.managing(owner, other.id),
        await rows.managing(third, acts.host.id),
        await rows.confirmed(owner, Act("manage_relay")),
        await rows.step_up(owner, acts.host),
    )
    for step_up_id in useless:
        assert await refusal(
            rows, getattr(acts, act)(owner, third if act != "own" else guest, step_up_id=step_up_id)
        ) == (
            401,
            "step_up_required",
        )
    once = await rows.managing(owner, acts.host.id)
    await getattr(acts, act)(owner, third if act != "own" else guest, step_up_id=once)
    assert await refusal(rows, acts.give(owner, guest, "robin-shell", step_up_id=once)) == (401, "step_up_required")


async def test_a_step_up_is_not_spent_by_what_is_refused_for_another_reason(rows, acts, owner, guest):
    once = await rows.managing(owner, acts.host.id)
    for attempt, code in (
        (acts.disown(owner, owner, step_up_id=once), "last_owner"),
        (acts.disown(owner, guest, step_up_id=once), "owner_unknown"),
        (acts.take(owner, guest, step_up_id=once), "grant_unknown"),
        (acts.give(owner, guest, until=rows.clock.now(), step_up_id=once), "expiry_past"),
    ):
        assert (await refusal(rows, attempt))[1] == code
    await acts.give(owner, guest, step_up_id=once)
