"""The closed list of what is audited is the one of the page, and what stands in it is decided somewhere."""

import re
from pathlib import Path
from typing import get_args

import pytest

import bothy_server
from bothy_server.identity.app.attempts import AttemptKind
from bothy_server.identity.domain.act import StepUpPurpose
from bothy_server.platform.audit import AUDIT_ACTIONS, check_audited
from bothy_wire.frames import CloseReason, OpenFailure

CODE = Path(bothy_server.__file__).parent
PAGE = CODE.parents[2] / "docs/spec/data.md"


def test_the_page_has_every_action_with_its_codes_actor_and_subject():
    section = PAGE.read_text().partition("### Actions\n")[2].partition("\n#")[0]
    rows = re.findall(r"^\| `([\w.]+)` \| (.+?) \| (.+?) \| (.+?) \|$", section, re.MULTILINE)
    assert {action: frozenset(re.findall(r"`(\w+)`", codes)) for action, codes, _, _ in rows} == dict(AUDIT_ACTIONS)
    assert [action for action, *_ in rows] == sorted(AUDIT_ACTIONS)


def test_every_action_is_decided_somewhere():
    source = "\n".join(path.read_text() for path in CODE.glob("*/app/*.py"))
    assert [action for action in AUDIT_ACTIONS if f'"{action}"' not in source] == []


def test_the_list_has_what_other_lists_have():
    assert AUDIT_ACTIONS["attempt.refused"] == set(get_args(AttemptKind)) | {"passkey_counter"}
    assert AUDIT_ACTIONS["step_up.confirm"] == set(get_args(StepUpPurpose))
    ends = AUDIT_ACTIONS["terminal.terminate"] | AUDIT_ACTIONS["terminal.close"] | {"open_failed"}
    assert ends == set(get_args(CloseReason)) | set(get_args(OpenFailure))


@pytest.mark.parametrize("pair", [("host.paint", "green"), ("host.state", "green"), ("", ""), ("host.state", "")])
def test_anything_else_is_refused(pair):
    with pytest.raises(ValueError, match="is not in AUDIT_ACTIONS"):
        check_audited(*pair)
    check_audited("host.state", "disabled")
