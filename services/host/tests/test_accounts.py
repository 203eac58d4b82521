from __future__ import annotations

import grp
import os
import pwd

import pytest

from bothy_host import accounts
from bothy_host.accounts import AccountRefused, account_for

ME = pwd.getpwuid(os.geteuid())


def test_own_account():
    account = account_for(ME.pw_name, [ME.pw_name], allow_root=True)
    assert (account.uid, account.home, account.switch) == (ME.pw_uid, ME.pw_dir, False)


@pytest.mark.parametrize(
    ("user", "allowed", "allow_root", "message"),
    [
        ("nobody-here", ["nobody-here"], True, "there is no account"),
        ("nobody", ["alex"], True, "does not allow nobody"),
        ("nobody", ["@nosuchgroup"], True, "does not allow nobody"),
        ("root", ["root"], False, "is root"),
        ("root", ["@root"], True, "is root"),
    ],
)
def test_refusals(user, allowed, allow_root, message):
    with pytest.raises(AccountRefused, match=message):
        account_for(user, allowed, allow_root=allow_root)


def test_a_service_without_rights_can_be_nobody_else(monkeypatch):
    monkeypatch.setattr(accounts.os, "geteuid", lambda: 4711)
    with pytest.raises(AccountRefused, match="cannot become nobody"):
        account_for("nobody", ["nobody"], allow_root=False)


def test_a_group_admits_its_members(monkeypatch):
    monkeypatch.setattr(accounts.os, "geteuid", lambda: 0)
    nobody = pwd.getpwnam("nobody")
    account = account_for("nobody", [f"@{grp.getgrgid(nobody.pw_gid).gr_name}"], allow_root=False)
    assert account.switch
    assert account.gid in account.groups
