from typing import get_args
from uuid import UUID

import pytest

from bothy_device import texts
from bothy_wire.channel.handshake import RefusalCode
from bothy_wire.close_codes import MEANINGS, CloseCode
from bothy_wire.frames import CloseReason, OpenFailure

SESSION = UUID("0190a1b2-0000-7000-8000-000000000001")
# What the server answers on the calls that this program makes.
ANSWERED = [
    "device_exists",
    "device_revoked",
    "device_unknown",
    "host_not_active",
    "host_unavailable",
    "host_unknown",
    "internal",
    "invite_invalid",
    "login_refused",
    "person_disabled",
    "profile_unknown",
    "rate_limited",
    "right_missing",
    "session_closed",
    "session_limit",
    "session_unknown",
    "step_up_refused",
    "step_up_required",
    "token_invalid",
    "unavailable",
    "user_unknown",
    "already_issued",
    "idempotency_mismatch",
    "replaced",
]


@pytest.mark.parametrize("code", ANSWERED)
def test_every_problem_says_what_to_do(code):
    assert len(texts.problem(code, "told")) > 20
    assert texts.problem(code, "told") != "told"


def test_a_new_problem_is_told_in_the_servers_words():
    assert texts.problem("moon_full", "The moon\nis \x1b[31mfull.") == "The moon is [31mfull."
    assert texts.problem("moon_full", "") == "the relay refused: moon_full"


def test_every_reason_of_the_wire_has_words():
    assert set(texts.CLOSE_REASONS) == set(get_args(CloseReason))
    assert set(texts.OPEN_FAILURES) == set(get_args(OpenFailure))
    assert set(texts.REFUSALS) == set(get_args(RefusalCode))


@pytest.mark.parametrize("code", [*CloseCode, 1005, 3000, 4999])
@pytest.mark.parametrize("opened", [True, False])
def test_every_close_code_is_one_clear_line(code, opened):
    text = texts.lost(code, "idle", SESSION, opened=opened)
    assert "\n" not in text
    assert len(text) > 20
    if code in MEANINGS and code != CloseCode.SESSION_ENDED:
        assert MEANINGS[CloseCode(code)].text in text


@pytest.mark.parametrize("code", [code for code in CloseCode if MEANINGS[code].stream != "never"])
def test_a_session_that_goes_on_says_how(code):
    assert texts.lost(code, "", SESSION, opened=True).endswith(f"the session goes on: bothy attach {SESSION}")
    assert "bothy attach" not in texts.lost(code, "", SESSION, opened=False)


@pytest.mark.parametrize(
    "code", [code for code in CloseCode if MEANINGS[code].stream == "never" and code not in (1000, 4100)]
)
def test_what_is_over_offers_no_way_back(code):
    assert "bothy attach" not in texts.lost(code, "", SESSION, opened=True)


def test_4100_shows_the_reason():
    assert texts.lost(4100, "max_duration", SESSION, opened=True) == (
        "closed by the relay: max_duration (it reached the longest time a session may last)"
    )
    assert texts.lost(4100, "", SESSION, opened=True) == "closed by the relay: no reason given"
    assert texts.lost(4100, "new\x1b[2J", SESSION, opened=True) == "closed by the relay: new [2J"
