"""Databases of the platform's tests: each test has its own, migrated."""

from collections.abc import AsyncIterator

import pytest

from bothy_server.platform.database import Database
from bothy_server.platform.settings import Database as DatabaseSettings


@pytest.fixture
def database_settings(database_url: str) -> DatabaseSettings:
    return DatabaseSettings(url=database_url)


@pytest.fixture
async def database(database_settings: DatabaseSettings) -> AsyncIterator[Database]:
    database = Database(database_settings)
    yield database
    await database.close()
