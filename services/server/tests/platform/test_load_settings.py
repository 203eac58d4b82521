"""Environment and file, and clear words about what is wrong with them."""

import os

import pytest

from bothy_server.platform.load_settings import SettingsError, environment_name, keys, known_names, load_settings


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """Nothing of the person who runs the tests, and what is required."""
    for name in os.environ:
        if name.upper().startswith("BOTHY_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("BOTHY_DATABASE__URL", "postgresql://bothy:hush@db/bothy")
    monkeypatch.setenv("BOTHY_SECRETS__SIGNING_KEY_DIR", "/keys")
    return monkeypatch


@pytest.fixture
def file(environment, tmp_path):
    def write(text):
        path = tmp_path / "bothy.toml"
        path.write_text(text)
        environment.setenv("BOTHY_CONFIG", str(path))

    return write


def error() -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings()
    return str(caught.value)


def test_the_environment_is_read_with_units(environment):
    environment.setenv("BOTHY_CLUSTER__MODE", "multi")
    environment.setenv("BOTHY_TERMINAL__OPEN_TIMEOUT", "5 s")
    environment.setenv("BOTHY_LOG__REPEAT_RATE", "3 per second")
    environment.setenv("BOTHY_SERVER__LISTEN", "[::]:80")
    environment.setenv("BOTHY_SERVER__PUBLIC_ORIGINS", "https://a.example.com,https://b.example.com")
    environment.setenv("BOTHY_WIRE__MAX_FRAME_BYTES", "70 KiB")
    made = load_settings()
    assert made.cluster.mode == "multi"
    assert made.terminal.open_timeout == 5
    assert (made.log.repeat_rate.count, made.log.repeat_rate.period_s) == (3, 1)
    assert str(made.server.listen) == "[::]:80"
    assert made.server.public_origins == ("https://a.example.com", "https://b.example.com")
    assert made.wire.max_frame_bytes == 70 * 1024
    assert made.database.url.get_secret_value() == "postgresql://bothy:hush@db/bothy"


LISTS = {"server.public_origins", "server.trusted_proxies"}


@pytest.mark.parametrize("key", [key for key, _ in keys() if key not in LISTS])
def test_every_key_is_read_from_its_environment_name(environment, key):
    """Nothing is a good value for any of them."""
    environment.setenv(environment_name(key), "")
    assert error().partition(":")[0] in {key, key.partition(".")[0]}


def test_the_environment_wins_over_the_file(environment, file):
    file('[terminal]\nopen_timeout = "7 s"\nstart_timeout = 8\n[server]\npublic_origins = ["https://a.example.com"]')
    environment.setenv("BOTHY_TERMINAL__OPEN_TIMEOUT", "9 s")
    made = load_settings()
    assert (made.terminal.open_timeout, made.terminal.start_timeout) == (9, 8)
    assert made.server.public_origins == ("https://a.example.com",)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("BOTHY_TERMINAL__OPEN_TIMOUT", "BOTHY_TERMINAL__OPEN_TIMEOUT"),
        ("BOTHY_CLUSTERMODE", "BOTHY_CLUSTER__MODE"),
        ("BOTHY_DATABASE_URL", "BOTHY_DATABASE__URL"),
        ("BOTHY_SERVER", "BOTHY_"),
        ("bothy_log__levels", "BOTHY_LOG__LEVEL"),
    ],
)
def test_an_unknown_name_is_named_with_the_nearest(environment, name, nearest):
    environment.setenv(name, "1")
    assert error().startswith(f"{name}: there is no such setting; the nearest is {nearest}")


@pytest.mark.parametrize(
    "name", ["BOTHY_TEST_PG_BIN", "BOTHY_DEMO_PORT", "BOTHY_NGINX_VERSION", "BOTHY_HTTP_PUBLISH_PORT"]
)
def test_names_of_other_programs_are_left_alone(environment, name):
    environment.setenv(name, "1")
    load_settings()


def test_an_unknown_key_in_the_file_is_named_with_the_nearest(file):
    file('[terminal]\nopen_timout = "7 s"\n')
    assert error() == "terminal.open_timout: there is no such setting; the nearest is terminal.open_timeout"


def test_an_unknown_group_in_the_file_is_named(file):
    file("[terminl]\nopen_timeout = 7\n")
    assert error().startswith("terminl: there is no such setting")


def test_a_file_that_is_missing_or_no_toml_is_named(environment, file):
    environment.setenv("BOTHY_CONFIG", "/nowhere/bothy.toml")
    assert error() == "BOTHY_CONFIG: there is no file /nowhere/bothy.toml"
    file("[terminal")
    assert "bothy.toml: " in error()


def test_what_is_required_is_named(environment):
    environment.delenv("BOTHY_DATABASE__URL")
    environment.delenv("BOTHY_SECRETS__SIGNING_KEY_DIR")
    assert error().splitlines() == [
        "database.url: must be set, for example by BOTHY_DATABASE__URL",
        "secrets.signing_key_dir: must be set, for example by BOTHY_SECRETS__SIGNING_KEY_DIR",
    ]


def test_each_bad_value_has_its_line_and_no_line_has_a_value(environment):
    environment.setenv("BOTHY_TERMINAL__OPEN_TIMEOUT", "soon")
    environment.setenv("BOTHY_CLUSTER__MODE", "many")
    environment.setenv("BOTHY_SERVER__PUBLIC_ORIGINS", "hush-hush")
    assert error().splitlines() == [
        "cluster.mode: Input should be 'single' or 'multi'",
        "server.public_origins.0: an address like https://relay.example.com is needed",
        'terminal.open_timeout: a duration is written like "20 s", "250 ms", "10 min", "12 h", "7 d"',
    ]


def test_values_that_do_not_fit_together_fail_the_start(environment):
    environment.setenv("BOTHY_TERMINAL__DETACH_GRACE", "2 d")
    assert error() == "terminal: detach_grace must not exceed max_duration"


def test_the_file_is_a_known_name():
    assert "BOTHY_CONFIG" in known_names()
