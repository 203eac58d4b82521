"""Who may be whom on a host, and who decides about it."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from bothy_server.identity.domain.rights import Owner, Right, Standing, may_leave, standing


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


@pytest.mark.parametrize(
    ("right", "is_operator", "found"),
    [
        (None, False, Standing.NONE),
        (Right(owner=False, session_users=frozenset({"alex"})), False, Standing.NONE),
        (None, True, Standing.OPERATOR),
        (Right(owner=False, session_users=frozenset({"alex"})), True, Standing.OPERATOR),
        (Right(owner=True), False, Standing.OWNER),
        (Right(owner=True), True, Standing.OWNER),
    ],
)
def test_what_a_caller_is_to_a_host(right, is_operator, found):
    assert standing(right, is_operator=is_operator) is found


@pytest.mark.parametrize(
    ("usable", "leaving", "allowed"),
    [
        ([True], 0, False),
        ([True, True], 0, True),
        ([True, False], 0, False),
        ([True, False], 1, True),
        ([False, False], 0, False),
        ([True], 9, True),
    ],
)
def test_an_owner_goes_only_when_one_stays_who_can_decide(usable, leaving, allowed):
    since = datetime(2026, 1, 1, tzinfo=UTC)
    owners = [Owner(UUID(int=number), f"person-{number}", since, each) for number, each in enumerate(usable)]
    assert may_leave(owners, UUID(int=leaving)) is allowed
