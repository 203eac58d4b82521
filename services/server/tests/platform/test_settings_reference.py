"""The configuration page is made from the settings, and is up to date."""

from pathlib import Path

from bothy_server.platform.load_settings import environment_name, keys
from bothy_server.platform.settings_reference import reference

PAGE = Path(__file__).parents[4] / "docs" / "operations" / "configuration.md"


def test_the_page_is_fresh():
    assert PAGE.read_text() == reference(), (
        "python -m bothy_server.platform.settings_reference > docs/operations/configuration.md"
    )


def test_every_key_has_its_line_and_says_what_it_means():
    page = reference()
    for key, field in keys():
        assert f"| `{key}`<br>`{environment_name(key)}` | " in page
        assert field.description is not None
        assert field.description.endswith(".")


def test_no_secret_has_a_default():
    assert "| `database.url`<br>`BOTHY_DATABASE__URL` | required |" in reference()
