import psycopg
import pytest

from bothy_server.cluster.adapters.postgres.connection import APPLICATION_NAME, ListeningConnection
from bothy_server.kernel.unit import StorageUnavailable
from bothy_server.platform.database import Database
from bothy_server.platform.settings import Database as DatabaseSettings


@pytest.fixture
async def connection(empty_url):
    async with await ListeningConnection.open(Database(DatabaseSettings(url=empty_url))) as connection:
        yield connection


@pytest.fixture
async def administrator(empty_url):
    async with await psycopg.AsyncConnection.connect(empty_url, autocommit=True) as administrator:
        yield administrator


async def test_hears_its_channel_by_its_exact_name(connection, administrator):
    await connection.listen("Sess_A")
    for channel, payload in (("sess_a", "folded"), ("ephemeral", "foreign"), ("Sess_A", "ours")):
        await administrator.execute("SELECT pg_notify(%s, %s)", [channel, payload])
    assert await connection.payloads() == ["ours"]


async def test_hears_what_came_together_with_the_answer_to_listen(connection, administrator):
    await connection.listen("one")
    await administrator.execute("SELECT pg_notify('one', 'early')")
    await connection.listen("two")
    assert await connection.payloads() == ["early"]


async def test_a_refused_listen_and_a_lost_server_are_errors(connection, administrator):
    with pytest.raises(psycopg.OperationalError):
        await connection.listen("")
    await administrator.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", [APPLICATION_NAME]
    )
    with pytest.raises(psycopg.OperationalError):
        await connection.payloads()


async def test_a_server_that_is_not_there():
    database = Database(DatabaseSettings(url="postgresql://127.0.0.1:1/nowhere"))
    with pytest.raises(StorageUnavailable):
        await ListeningConnection.open(database)
