"""An invite is a code that is shown once, and stored so that nobody who reads the rows can use it."""

from bothy_server.identity.app.invites import Invites
from bothy_wire.codes import code_hash


async def test_an_invite_is_stored_by_hash_for_its_life(rows, clock):
    person_id = await rows.person()
    async with rows.uow() as unit:
        invited = await Invites(clock, 3600).make(unit, person_id, "Robin")
    assert (invited.person_id, invited.name, invited.life_s) == (person_id, "Robin", 3600)
    ((stored, life_s, used_at),) = await rows.run(
        "SELECT code_hash, extract(epoch FROM expires_at - created_at), used_at FROM invites WHERE person_id = :id",
        id=person_id,
    )
    assert (bytes(stored), life_s, used_at) == (code_hash(invited.code), 3600, None)


async def test_no_two_invites_are_alike(rows, clock):
    person_id = await rows.person()
    async with rows.uow() as unit:
        made = [await Invites(clock, 3600).make(unit, person_id, "Robin") for _ in range(3)]
    assert len({each.code for each in made}) == 3
