"""What an act names, and what a device signs of it."""

from typing import get_args
from uuid import UUID

import pytest

from bothy_server.identity.domain.act import Act, StepUpPurpose

HOST = UUID(int=7)
NAMED = {"open": 3, "attach": 3, "manage_host": 1, "manage_relay": 0, "manage_account": 0}
"""How much of host, profile and session user a purpose is about, from the left."""


def test_every_purpose_is_here():
    assert set(NAMED) == set(get_args(StepUpPurpose))


@pytest.mark.parametrize("purpose", NAMED)
@pytest.mark.parametrize("host_id", [HOST, None])
@pytest.mark.parametrize("profile", ["shell", None])
@pytest.mark.parametrize("session_user", ["alex-shell", None])
def test_an_act_is_complete_when_it_names_what_its_purpose_is_about_and_no_more(
    purpose, host_id, profile, session_user
):
    given = (host_id is not None, profile is not None, session_user is not None)
    wanted = tuple(each < NAMED[purpose] for each in range(3))
    assert Act(purpose, host_id, profile, session_user).complete is (given == wanted)


def test_what_is_not_named_is_signed_as_empty():
    assert Act("open", HOST, "shell", "alex-shell").fields() == ("open", str(HOST), "shell", "alex-shell")
    assert Act("manage_host", HOST).fields() == ("manage_host", str(HOST), "", "")
    assert Act("manage_account").fields() == ("manage_account", "", "", "")
