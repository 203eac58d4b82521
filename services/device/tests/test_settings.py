import pytest

from bothy_device.failure import Failure
from bothy_device.settings import Settings, load


def test_no_file_means_the_defaults(tmp_path):
    assert load(tmp_path / "config.toml") == Settings()


def test_a_value_is_taken(tmp_path):
    (tmp_path / "config.toml").write_text(
        '[device]\nstrict_host_keys = true\nescape_char = "%"\n[channel]\nfail_grace = 2\n'
    )
    settings = load(tmp_path / "config.toml")
    assert settings.device.strict_host_keys
    assert settings.escape == b"%"
    assert settings.channel.fail_grace == 2


def test_no_escape_character(tmp_path):
    (tmp_path / "config.toml").write_text('[device]\nescape_char = "none"\n')
    assert load(tmp_path / "config.toml").escape == b""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("[device]\npaste = 1\n", "paste"),
        ("[devices]\n", "devices"),
        ("[device]\npaste_bytes = 0\n", "paste_bytes"),
        ('[device]\npaste_bytes = "8 MiB"\n', "paste_bytes"),
        ("[channel]\nhandshake_timeout = -1\n", "handshake_timeout"),
        ('[device]\nescape_char = "ab"\n', "escape_char"),
        ('[device]\nescape_char = "\u00e4"\n', "escape_char"),
        ("[device\n", "line 1"),
    ],
)
def test_anything_else_is_an_error_that_names_it(tmp_path, text, names):
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(Failure) as refused:
        load(tmp_path / "config.toml")
    assert "config.toml" in refused.value.message
    assert names in refused.value.message
