from __future__ import annotations

import pytest

from bothy_host.accounts import Account
from bothy_host.program import environment, program_of
from bothy_host.settings import Profile

ALEX = Account("alex", 1000, 1000, (1000,), "/home/alex", "/bin/zsh", switch=False)


def test_environment_is_an_allow_list(monkeypatch):
    monkeypatch.setenv("BOTHY_SECRET", "canary")
    monkeypatch.setenv("LANG", "en_US.UTF-8")
    monkeypatch.setenv("LC_TIME", "C")
    made = environment(ALEX, "vt220", {"EDITOR": "vi", "TERM": "evil"})
    assert "BOTHY_SECRET" not in made
    assert (made["LANG"], made["LC_TIME"], made["EDITOR"], made["TERM"]) == ("en_US.UTF-8", "C", "vi", "vt220")


def test_without_a_command_it_is_the_login_shell():
    program = program_of(Profile(users="alex"), ALEX, "xterm")
    assert (program.path, program.argv, program.folder) == ("/bin/zsh", ("-zsh",), None)


def test_a_command_runs_where_its_profile_says():
    program = program_of(Profile(users="alex", command=["/usr/bin/htop", "-d", "5"], cwd="/srv"), ALEX, "xterm")
    assert (program.path, program.argv, program.folder) == ("/usr/bin/htop", ("/usr/bin/htop", "-d", "5"), "/srv")


@pytest.mark.parametrize("term", ["", "-x", "../../etc/passwd", "xterm\n", "x y", "a/b"])
def test_a_terminal_with_a_dangerous_name_is_a_plain_one(term):
    assert program_of(Profile(users="alex"), ALEX, term).environment["TERM"] == "xterm-256color"
