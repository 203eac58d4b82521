"""When a control connection has to go, and with which code."""

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import get_args
from uuid import UUID

import pytest

from bothy_server.hosts.domain.host import TRANSITIONS, Host, HostAct, HostState, Transition, close_code, sources
from bothy_wire.close_codes import CloseCode

HOST = Host(
    id=UUID(int=1),
    name="lab-1",
    state=HostState.ACTIVE,
    disabled_reason=None,
    signing_key=bytes(32),
    channel_key=bytes(32),
    pairing_seq=3,
    boot_id=None,
    last_conn_id=None,
    join_confirmed=1,
    join_offered=2,
    profiles=MappingProxyType({}),
    require_local_confirm=False,
    last_seen_at=None,
)
PENDING, ACTIVE, DISABLED, RETIRED = HostState


@pytest.mark.parametrize(
    ("keys", "paired"),
    [
        ((b"s", b"c"), True),
        ((None, b"c"), False),
        ((b"s", None), False),
        ((None, None), False),
    ],
)
def test_a_host_is_paired_when_both_keys_are_known(keys, paired):
    assert replace(HOST, signing_key=keys[0], channel_key=keys[1]).paired is paired


@pytest.mark.parametrize(
    ("changed", "pairing_seq", "code"),
    [
        ({}, 3, None),
        ({"state": PENDING}, 3, None),
        # A connection of the next pairing, met by a row that was read before it, stays.
        ({}, 4, None),
        ({}, 2, CloseCode.HOST_REPAIRED),
        ({"signing_key": None, "channel_key": None, "state": PENDING}, 3, CloseCode.HOST_REPAIRED),
        ({"state": DISABLED}, 3, CloseCode.HOST_DISABLED),
        ({"state": DISABLED, "disabled_reason": "by_owner"}, 3, CloseCode.HOST_DISABLED),
        ({"state": DISABLED, "disabled_reason": "duplicate_connection"}, 3, CloseCode.DUPLICATE_CONNECTION),
        ({"state": RETIRED}, 3, CloseCode.HOST_DISABLED),
        ({"state": RETIRED, "disabled_reason": "duplicate_connection"}, 3, CloseCode.HOST_DISABLED),
        # An older pairing is told so whatever the state is: 4110 comes before 4111 and 4112.
        ({"state": RETIRED}, 2, CloseCode.HOST_REPAIRED),
        ({"state": DISABLED, "disabled_reason": "duplicate_connection"}, 2, CloseCode.HOST_REPAIRED),
    ],
)
def test_why_a_connection_goes(changed, pairing_seq, code):
    assert close_code(replace(HOST, **changed), pairing_seq) is code


def test_closing_codes_are_those_of_the_page():
    page = (Path(__file__).parents[5] / "docs/spec/data.md").read_text()
    section = page.partition("### Which code closes a connection\n")[2].partition("###")[0]
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in section.splitlines() if line[:1] == "|"][
        2:
    ]
    played = set()
    for pairing, state, reason, closes in rows:
        for each in HostState if state == "any" else [HostState(state)]:
            host = replace(HOST, state=each, disabled_reason=None if reason in {"any", "-"} else reason)
            code = close_code(host, host.pairing_seq - (pairing != "the row's"))
            assert ("stays" if code is None else str(int(code))) == closes
            played.add((pairing, each))
    assert len(played) == 2 * len(HostState)


def test_a_row_that_is_not_there_is_no_pairing():
    assert close_code(None, 1) is CloseCode.HOST_REPAIRED


def test_transitions_are_those_of_the_page():
    page = (Path(__file__).parents[5] / "docs/spec/data.md").read_text().partition("### States of a host")[2]
    rows = [line.split("|")[1:4] for line in page.partition("###")[0].splitlines() if line.startswith("| `")]
    told = [Transition(*(cell.strip(" `") for cell in row)) for row in rows]
    assert told == list(TRANSITIONS)


def test_every_act_finds_a_host_somewhere_and_retired_is_final():
    assert {act: sources(act) for act in get_args(HostAct)} == {
        "confirm": {PENDING},
        "disable": {ACTIVE},
        "duplicate": {ACTIVE},
        "enable": {DISABLED},
        "retire": {PENDING, ACTIVE, DISABLED},
        "code": {ACTIVE, DISABLED},
    }
