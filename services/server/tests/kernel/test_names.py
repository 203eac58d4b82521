"""What may be a name."""

import pytest

from bothy_server.kernel.names import check_name
from bothy_server.kernel.problems import Problem


@pytest.mark.parametrize("name", ["a", "Alex's laptop", "x" * 64, "\u00e9" * 32, "\U0001f5a5" * 16])
def test_a_name_is_taken_as_it_is(name):
    check_name(name)


@pytest.mark.parametrize(
    "name", ["", "x" * 65, "\u00e9" * 33, "lap\x00top", "lap\x1b[2Jtop", "lap\ntop", "lap\u2028top", "lap\udcfftop"]
)
def test_what_a_row_cannot_hold_or_a_screen_cannot_show_is_refused(name):
    with pytest.raises(Problem) as refusal:
        check_name(name)
    assert (refusal.value.status, refusal.value.code) == (422, "name_invalid")
