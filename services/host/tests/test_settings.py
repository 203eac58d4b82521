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
        ("server = 'ftp://x'", "server: an address like"),
        ("server = 1", "server"),
        ("= 1", "x: "),
        ("host = 3", "host"),
        ("profile = 3", "profile"),
        ("[profile]\nshell = 3", "profile"),
        ("[host]\nreplay_bytes = 4096\nrepaint_bytes = 8192", "repaint_bytes is larger"),
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
