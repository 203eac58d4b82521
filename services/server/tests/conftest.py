"""What tests of use cases share: a clock that stands still, keys to sign with, rows to begin with."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from bothy_kit.cluster import Cluster, cluster
from bothy_kit.manual_clock import ManualClock
from bothy_kit.rows import Rows
from bothy_server.identity.adapters.keystore.store import add_key
from bothy_server.identity.adapters.keystore.tokens import KeyStoreTokens, TokenLimits
from bothy_server.platform.database import Database
from bothy_server.platform.settings import Database as DatabaseSettings


@pytest.fixture
def clock() -> ManualClock:
    """Begins at the present, since rows get their instants from the database."""
    return ManualClock(datetime.now(UTC))


@pytest.fixture(scope="session")
def signing_key_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key store with one key; nobody changes it."""
    folder = tmp_path_factory.mktemp("signing") / "keys"
    made = datetime.now(UTC) - timedelta(days=1)
    add_key(folder, made, made)
    return folder


@pytest.fixture
def tokens(signing_key_dir: Path, clock: ManualClock) -> KeyStoreTokens:
    return KeyStoreTokens(
        signing_key_dir, clock, TokenLimits(access_ttl=600, session_ttl=60, leeway=5, publish_lead=3600)
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def node(
    request: pytest.FixtureRequest, shared_database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Cluster]:
    """One node for all tests of a module, with the module's ``NODE_SETTINGS``; they run in its loop::

    pytestmark = pytest.mark.asyncio(loop_scope="module")
    """
    groups = getattr(request.module, "NODE_SETTINGS", {})
    async with cluster(shared_database_url, tmp_path_factory.mktemp("node"), nodes=1, **groups) as running:
        yield running


@pytest.fixture
async def rows(shared_database_url: str, clock: ManualClock) -> AsyncIterator[Rows]:
    database = Database(DatabaseSettings(url=shared_database_url))
    yield Rows(database, clock)
    await database.close()
