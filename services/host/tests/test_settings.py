from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from bothy_host.settings import ChannelSettings, HostSettings, Profile, Settings, SettingsError, load, parse

PROFILE = '[profile.shell]\nusers = ["alex"]\n'
PAGE = Path(__file__).parents[3] / "docs/operations/host.md"


def test_everything_has_a_default_but_the_users_of_a_profile():
    settings = parse(PROFILE, "x")
    assert settings.profile["shell"].allowed == ["alex"]
    assert settings.host.replay_bytes == 2 * 1024 * 1024
    with pytest.raises(SettingsError, match="users"):
        parse("[profile.shell]\n", "x")


def test_a_group_may_stand_alone():
    assert parse('[profile.shell]\nusers = "@staff"\n', "x").profile["shell"].allowed == ["@staff"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('sever = "x"', "sever is not a setting; did you mean server?"),
        ("[host]\nreplay_byte = 1", "host.replay_byte is not a setting; did you mean host.replay_bytes?"),
        ("[chanel]\n", "chanel is not a setting; did you mean channel?"),
        (PROFILE + "usrs = []", "profile.shell.usrs is not a setting; did you mean profile.shell.users?"),
        ("zzz = 1", "zzz is not a setting; known are server"),
        ("[host]\nhold_output = -1", "hold_output"),
        ("[host]\nhold_output = 'long'", "hold_output"),
        ("server = 'ftp://x'", "server is no address of a relay"),
        ("server = 1", "server"),
        ("= 1", "x: "),
        ("host = 3", "host"),
        ("profile = 3", "profile"),
        ("[profile]\nshell = 3", "profile"),
        ("[host]\nreplay_bytes = 4096\nrepaint_bytes = 8192", "repaint_bytes is larger"),
        ("[channel]\noutput_window_min = 300_000", "output_window is not between"),
        ("[channel]\noutput_window_max = 200_000", "output_window is not between"),
        ("[channel]\noutput_window_max = 4_194_305", "output_window_max is above 4194304"),
        (PROFILE + 'command = ["bash"]', "absolute path"),
        (PROFILE + "command = []", "command"),
        ('[profile.shell]\nusers = ["root"]', "needs allow_root"),
    ],
)
def test_wrong_settings_say_what_is_wrong(text, message):
    with pytest.raises(SettingsError, match=re.escape(message)):
        parse(text, "x")


def test_root_may_be_allowed_by_name():
    assert parse('allow_root = true\n[profile.shell]\nusers = ["root"]', "x").allow_root


def test_a_named_file_must_exist(tmp_path):
    with pytest.raises(SettingsError, match="no such file"):
        load(tmp_path / "host.toml")
    (tmp_path / "host.toml").write_bytes(b"\xff")
    with pytest.raises(SettingsError, match="cannot be read"):
        load(tmp_path / "host.toml")
    (tmp_path / "host.toml").write_text(PROFILE)
    assert load(tmp_path / "host.toml").profile


def test_the_reference_page_names_every_setting_with_its_default():
    rows = dict(re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", PAGE.read_text(), re.MULTILINE))
    expected = {}
    for prefix, kind in (
        ("", Settings),
        ("host.", HostSettings),
        ("channel.", ChannelSettings),
        ("profile.NAME.", Profile),
    ):
        for field in msgspec.structs.fields(kind):
            if field.name not in ("host", "channel", "profile"):
                expected[prefix + field.name] = _shown(field)
    assert {name: default.strip() for name, default in rows.items()} == expected


def _shown(field) -> str:
    if field.default_factory is not msgspec.NODEFAULT:
        return "none"
    match field.default:
        case msgspec.NODEFAULT:
            return "required"
        case None:
            return "none"
        case bool() as value:
            return str(value).lower()
        case str() as value:
            return f"`{value}`"
        case value:
            return str(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[profile.shell]\nusers = 5\n", "test: profile.shell.users: expected text or a list, got a number"),
        ("[profile.shell]\n", "test: profile.shell: missing is users"),
        ('[profile.shell]\nusers = ["a", 5]\n', "test: profile.shell.users[1]: expected text, got a number"),
        ("profile = 5\n", "test: profile: tables [profile.NAME] are needed"),
        ("[profile]\nshell = 5\n", "test: profile.shell: expected a table, got a number"),
        ("[host]\nmax_sessions = 0\n", "test: host.max_sessions: expected a number >= 1"),
        ("allow_root = 1\n", "test: allow_root: expected true or false, got a number"),
        ("host = 1\n", "test: host: expected a table, got a number"),
        (f"[profile.{'n' * 65}]\nusers = []\n", "test: key in profile: expected text of length <= 64"),
        ('server = "ftp://x"\n', "test: server is no address of a relay like https://relay.example.com"),
        ("[host]\nreplay_bytes = 2000000\nrepaint_bytes = 1048576\n", "the most that a device takes"),
    ],
)
def test_what_is_wrong_is_said_with_its_key_in_plain_words(text, message):
    with pytest.raises(SettingsError) as refused:
        parse(text, "test")
    assert message in str(refused.value)
    assert "$" not in str(refused.value)
    assert "`" not in str(refused.value)
