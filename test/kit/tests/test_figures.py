"""Tables find their place, and percentiles are values that were measured."""

import pytest

from bothy_kit.figures import PAGE, percentiles, with_table


def test_percentiles_are_measured_values() -> None:
    assert percentiles([3.0, 1.0, 2.0], 50, 95) == [2.0, 3.0]
    assert percentiles(range(1, 101), 50, 95, 100) == [50, 95, 100]
    assert percentiles([], 50) == []


def test_a_table_takes_the_place_of_the_last_one() -> None:
    page = "head\n<!-- x -->\nold\n<!-- end of x -->\ntail\n"
    assert with_table(page, "x", "new") == "head\n<!-- x -->\nnew\n<!-- end of x -->\ntail\n"
    with pytest.raises(ValueError, match="no marks of y"):
        with_table(page, "y", "new")


@pytest.mark.parametrize("name", ["chaos", "survive"])
def test_the_page_has_a_place_for_each_measurement(name: str) -> None:
    assert "| new |" in with_table(PAGE.read_text(), name, "| new |")
