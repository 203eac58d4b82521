"""Who may be whom on a host."""

import pytest

from bothy_server.identity.domain.rights import Right


@pytest.mark.parametrize(
    ("right", "session_user", "allowed"),
    [
        (Right(owner=True), "anybody", True),
        (Right(owner=True, session_users=frozenset({"alex"})), "robin", True),
        (Right(owner=False, session_users=frozenset({"alex"})), "alex", True),
        (Right(owner=False, session_users=frozenset({"alex"})), "robin", False),
        (Right(owner=False, session_users=frozenset({"alex"})), "Alex", False),
        (Right(owner=False), "alex", False),
        (Right(owner=False), "", False),
    ],
)
def test_which_session_user_a_right_allows(right, session_user, allowed):
    assert right.allows(session_user) is allowed
