"""The table of close codes: complete, with a meaning for the codes that nobody knows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothy_wire.close_codes import MEANINGS, CloseCode, fit_reason, retry_of, text_of
from bothy_wire.limits import CLOSE_REASON_BYTES

STREAM = {
    "never": {1000, 4100, 4101, 4103, 4105, 4110, 4111, 4112, 4113},
    "soon": {1006, 1012, 4009, 4104},
    "later": {1011, 1013, 4108},
    "attach": {1009, 4102, 4106, 4107, 4109},
}
DATA = {
    "soon": {1000, 1006, 1009, 1012, 4009, 4106, 4107, 4109},
    "later": {1011, 1013, 4108},
    "wait": {4102},
    "never": {4100, 4101, 4103, 4104, 4105, 4110, 4111, 4112, 4113},
}


def test_every_code_has_a_meaning():
    assert set(MEANINGS) == set(CloseCode)
    names = [meaning.name for meaning in MEANINGS.values()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("client", "table"), [("stream", STREAM), ("data", DATA)])
def test_retry(client, table):
    assert {code: retry_of(code, client) for code in CloseCode} == {
        code: retry for retry, codes in table.items() for code in codes
    }


@pytest.mark.parametrize("code", [4110, 4111, 4112, 4113, 4101])
def test_a_host_that_is_not_wanted_stops(code):
    assert retry_of(code, "control") == "never"


@pytest.mark.parametrize("code", [1000, 1006, 1011, 1012, 1013, 4009])
def test_a_host_comes_back_after_a_fault(code):
    assert retry_of(code, "control") in {"soon", "later"}


@pytest.mark.parametrize(
    ("code", "retry"),
    [(1001, "soon"), (1999, "soon"), (4000, "never"), (4999, "never"), (999, "never"), (2000, "never")],
)
def test_unknown_codes(code, retry):
    assert retry_of(code, "stream") == retry
    assert str(code) in text_of(code)


@pytest.mark.parametrize("code", CloseCode)
def test_every_text_is_for_a_person(code):
    assert text_of(code) == MEANINGS[code].text
    assert text_of(code)


@given(st.text(max_size=200))
def test_a_reason_fits_a_close_frame(reason):
    fitted = fit_reason(reason)
    assert len(fitted.encode()) <= CLOSE_REASON_BYTES
    assert reason.startswith(fitted)
    assert len(reason.encode()) > CLOSE_REASON_BYTES or fitted == reason
