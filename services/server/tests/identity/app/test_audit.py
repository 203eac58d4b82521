"""Pages of the audit: newest first, back to the first entry, in bounded work each."""

import pytest

from bothy_server.identity.app.audit import Audit, AuditFilter
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import AuditEntry

EVERYTHING = AuditFilter()


@pytest.fixture
async def operator(rows):
    return (await rows.device(operator=True)).caller


@pytest.fixture
async def host_id(rows):
    return rows.new_id()


@pytest.fixture
async def write(rows, host_id):
    """So many entries about a host that nothing else is about; their positions."""

    async def entries(count, action="host.rename", code="renamed"):
        async with rows.uow() as unit:
            for _ in range(count):
                unit.audit(AuditEntry(action, code, host_id=host_id))
        found = await rows.run("SELECT position FROM audit_log WHERE host_id = :id ORDER BY 1", id=host_id)
        return [position for (position,) in found][-count:]

    return entries


async def pages(read, asked=EVERYTHING, limit=3):
    """Every page until there is none behind."""
    found, before = [], None
    while True:
        page = await read(asked, before, limit)
        found.append(page.entries)
        before = page.before
        if before is None:
            return found


async def test_pages_go_from_the_newest_entry_to_the_first_and_leave_none_out(rows, operator, write, host_id):
    wanted = await write(7)
    audit = Audit(rows.uow, 10_000)
    found = await pages(lambda *page: audit.all(operator, *page), AuditFilter(host_id=host_id))
    assert [len(page) for page in found] == [3, 3, 1]
    assert [entry.position for page in found for entry in page] == wanted[::-1]
    assert {(entry.action, entry.code, entry.host_id) for page in found for entry in page} == {
        ("host.rename", "renamed", host_id)
    }


async def test_all_entries_are_there_without_a_filter(rows, operator, write):
    await write(2)
    found = await pages(lambda *page: Audit(rows.uow, 10_000).all(operator, *page), limit=100)
    positions = [entry.position for page in found for entry in page]
    assert positions == list(range(positions[0], 0, -1))


async def test_a_page_looks_at_so_many_rows_and_says_where_it_stopped(rows, operator, write, host_id):
    rare = (await write(1, "host.pair", "paired"))[0]
    await write(9)
    audit, asked = Audit(rows.uow, 4), AuditFilter(host_id=host_id, action="host.pair")
    page = await audit.all(operator, asked, None, 3)
    assert (page.entries, page.before) == ([], rare + 6)
    found = await pages(lambda *page: audit.all(operator, *page), asked)
    assert [entry.position for page in found for entry in page] == [rare]


async def test_entries_that_come_meanwhile_move_no_page(rows, operator, write, host_id):
    wanted = await write(4)
    audit, asked = Audit(rows.uow, 10_000), AuditFilter(host_id=host_id)
    first = await audit.all(operator, asked, None, 2)
    await write(3)
    second = await audit.all(operator, asked, first.before, 2)
    assert [entry.position for entry in (*first.entries, *second.entries)] == wanted[::-1]


async def test_who_is_no_operator_reads_no_entry_of_others(rows, write):
    await write(1)
    caller = (await rows.device()).caller
    with pytest.raises(Problem) as refused:
        await Audit(rows.uow, 10_000).all(caller, EVERYTHING, None, 3)
    assert (refused.value.status, refused.value.code) == (403, "operator_required")


async def test_a_person_reads_what_they_did_and_what_was_done_about_them(rows, operator, write, host_id):
    robin, sam = await rows.device(), await rows.device()
    mine = [
        AuditEntry("terminal.open", "opened", person_id=robin.person_id, device_id=robin.id),
        AuditEntry("person.state", "enabled", person_id=operator.person_id, subject_person_id=robin.person_id),
        AuditEntry("attempt.refused", "login", subject_device_id=robin.id),
    ]
    others = [
        AuditEntry("terminal.open", "opened", person_id=sam.person_id, device_id=sam.id),
        AuditEntry("attempt.refused", "login", subject_device_id=sam.id),
        AuditEntry("host.pair", "paired", host_id=host_id),
    ]
    async with rows.uow() as unit:
        for entry in (*mine, *others):
            unit.audit(entry)
    found = await pages(lambda *page: Audit(rows.uow, 10_000).mine(robin.caller, *page))
    told = [(entry.action, entry.subject_person_id, entry.subject_device_id) for page in found for entry in page]
    assert told == [(each.action, each.subject_person_id, each.subject_device_id) for each in reversed(mine)]
    narrowed = await Audit(rows.uow, 10_000).mine(robin.caller, AuditFilter(person_id=sam.person_id), None, 3)
    assert narrowed.entries == [], "a filter never widens what is one's own"


async def test_an_empty_log_is_one_empty_page(rows, operator):
    page = await Audit(rows.uow, 10_000).all(operator, EVERYTHING, 1, 3)
    assert (page.entries, page.before) == ([], None)
