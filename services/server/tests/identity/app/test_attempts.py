import asyncio
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest

from bothy_kit.rows import Rows
from bothy_server.identity.app.attempts import Attempts, AttemptStore
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.rates import Rate
from bothy_server.platform.database import Database
from bothy_server.platform.settings import Database as DatabaseSettings

RATE = Rate(3, 3600)
"""So slow that no machine is slow enough for one more to be allowed while a test runs."""
WRONG = (401, "login_refused")
TOO_MANY = (429, "rate_limited")


@pytest.fixture
def attempts(rows):
    return Attempts(rows.uow, RATE)


@pytest.fixture
async def other_node(shared_database_url, clock):
    """The same of another node: a pool of its own on the same database."""
    database = Database(DatabaseSettings(url=shared_database_url))
    yield Attempts(Rows(database, clock).uow, RATE)
    await database.close()


async def tried(attempts, subject, kind="login", *, raising=WRONG):
    """What an attempt is answered; None for one that is right."""
    try:
        async with attempts.guarding(kind, subject, wrong="login_refused"):
            if raising is not None:
                raise Problem(*raising, "")
    except Problem as problem:
        return problem.status, problem.code


async def forgiven(rows, seconds):
    """So much time passes for every count."""
    await rows.run("UPDATE attempts SET whole_at = whole_at - make_interval(secs => :seconds)", seconds=seconds)


async def test_failures_beyond_the_rate_are_told_to_wait(attempts, rows):
    device_id = uuid4()
    assert [await tried(attempts, device_id) for _ in range(5)] == [WRONG] * 3 + [TOO_MANY] * 2
    await forgiven(rows, 1200)
    assert [await tried(attempts, device_id) for _ in range(2)] == [WRONG, TOO_MANY]


async def test_retry_after_is_when_the_next_failure_is_answered_again(attempts, rows):
    device_id = uuid4()
    for _ in range(3):
        await tried(attempts, device_id)
    with pytest.raises(Problem) as raised:
        async with attempts.guarding("login", device_id, wrong="login_refused"):
            raise Problem(*WRONG, "")
    assert 1000 < raised.value.retry_after_s <= 1200
    await forgiven(rows, raised.value.retry_after_s)
    assert await tried(attempts, device_id) == WRONG


async def test_who_is_right_passes_however_many_others_failed(attempts):
    device_id = uuid4()
    for _ in range(10):
        await tried(attempts, device_id)
    assert await tried(attempts, device_id, raising=None) is None


async def test_other_refusals_and_successes_are_not_counted(attempts, rows):
    device_id = uuid4()
    before = await rows.content()
    for raising in (None, (409, "device_exists"), (503, "unavailable")) * 3:
        assert await tried(attempts, device_id, raising=raising) == raising
    assert await rows.content() == before


async def test_kinds_and_subjects_are_counted_apart(attempts):
    device_id, person_id = uuid4(), uuid4()
    for _ in range(3):
        await tried(attempts, device_id)
    assert await tried(attempts, device_id) == TOO_MANY
    assert await tried(attempts, person_id) == WRONG
    assert await tried(attempts, device_id, "step_up") == WRONG


async def test_a_subject_that_exists_and_one_that_does_not_are_counted_alike(attempts, rows):
    device = await rows.device()
    answers = [[await tried(attempts, subject) for _ in range(5)] for subject in (device.id, uuid4())]
    assert answers[0] == answers[1]


async def test_of_failures_at_once_on_two_nodes_as_many_are_answered_as_the_rate_says(attempts, other_node):
    device_id = uuid4()
    answers = await asyncio.gather(*(tried(node, device_id) for node in (attempts, other_node) * 5))
    assert sorted(answers) == [WRONG] * 3 + [TOO_MANY] * 7


async def test_a_short_code_is_not_even_judged_once_there_were_too_many(attempts, other_node):
    """Right or wrong, at once or one by one, on one node or two: so many guesses and no more."""
    person_id, judged = uuid4(), []

    async def guess(node):
        async with node.guarding("user_code", person_id, wrong="user_code_invalid"):
            judged.append(node)

    answers = await asyncio.gather(*(guess(node) for node in (attempts, other_node) * 5), return_exceptions=True)
    assert len(judged) == 3
    assert [(each.status, each.code) for each in answers if each is not None] == [TOO_MANY] * 7
    assert await tried(attempts, person_id, "user_code") == TOO_MANY


async def test_the_attempts_own_unit_is_over_before_it_is_counted(attempts, rows):
    """Units do not nest, and the count stays although the attempt rolled back."""
    device_id, host_id = uuid4(), rows.new_id()

    @asynccontextmanager
    async def attempt():
        async with attempts.guarding("login", device_id, wrong="login_refused"), rows.uow() as unit:
            yield unit

    with pytest.raises(Problem):
        async with attempt():
            raise Problem(*WRONG, "")
    assert await rows.run("SELECT count(*) FROM hosts WHERE id = :id", id=host_id) == [(0,)]
    assert [await tried(attempts, device_id) for _ in range(3)] == [WRONG] * 2 + [TOO_MANY]


@pytest.mark.parametrize(("kind", "named"), [("login", "subject_device_id"), ("step_up", "subject_person_id")])
async def test_too_many_failures_are_audited_once_a_window(attempts, rows, kind, named):
    subject = uuid4()
    for _ in range(10):
        await tried(attempts, subject, kind)
    assert await rows.audit(**{named: subject}) == [("attempt.refused", kind)]
    await forgiven(rows, 3600)
    for _ in range(10):
        await tried(attempts, subject, kind)
    assert await rows.audit(**{named: subject}) == [("attempt.refused", kind)] * 2


async def test_an_address_is_not_written_down(attempts, rows):
    ((before,),) = await rows.run("SELECT coalesce(max(position), 0) FROM audit_log")
    address = f"198.51.100.7 {uuid4()}"
    for _ in range(4):
        await tried(attempts, address, "code")
    entries = await rows.run(
        "SELECT action, code, subject_person_id, subject_device_id FROM audit_log WHERE position > :before",
        before=before,
    )
    assert entries == [("attempt.refused", "code", None, None)]


async def test_what_is_whole_again_is_pruned(attempts, rows):
    await forgiven(rows, 7200)
    owing = uuid4()
    for _ in range(2):
        await tried(attempts, owing)
    async with rows.uow() as unit:
        await unit.of(AttemptStore).prune()
    assert await rows.run("SELECT kind FROM attempts") == [("login",)]
    assert [await tried(attempts, owing) for _ in range(2)] == [WRONG, TOO_MANY]
