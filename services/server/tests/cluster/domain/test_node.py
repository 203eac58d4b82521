"""When a node lacks a key."""

import pytest

from bothy_server.cluster.domain.node import missing_keys


@pytest.mark.parametrize(
    ("own", "signing", "missing"),
    [
        (["a", "b"], ["a"], ()),
        (["a"], [], ()),
        (["a"], ["c", "a", "b", "c"], ("b", "c")),
        ([], ["a"], ()),
    ],
)
def test_missing_keys(own, signing, missing):
    assert missing_keys(own, signing) == missing
