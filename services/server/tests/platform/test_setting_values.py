"""How durations, sizes, rates and addresses are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothy_server.kernel.rates import Rate
from bothy_server.platform.setting_values import (
    Address,
    format_duration,
    format_rate,
    format_size,
    parse_address,
    parse_duration,
    parse_list,
    parse_rate,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("20s", 20),
        ("10 min", 600),
        ("250ms", 0.25),
        ("700 ms", 0.7),
        ("1.5 h", 5400),
        ("7 d", 604800),
        ("5", 5),
        (" 5 s ", 5),
    ],
)
def test_durations(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"), [("64 KiB", 65536), ("8MiB", 8 << 20), ("1 GiB", 1 << 30), ("512 B", 512), ("7", 7)]
)
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "s", "20 sec", "-1 s", "1 m", "1 s 2", "1e3", "nan", "inf", "٣ s"])
def test_bad_durations(text):
    with pytest.raises(ValueError, match="a duration is written like"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["", "64 KB", "64kib", "64 k", "-1"])
def test_bad_sizes(text):
    with pytest.raises(ValueError, match="a size is written like"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "rate"), [("30 per minute", Rate(30, 60)), ("5/second", Rate(5, 1)), ("100 per hour", Rate(100, 3600))]
)
def test_rates(text, rate):
    assert parse_rate(text) == rate


@pytest.mark.parametrize("text", ["30", "0 per minute", "30 per day", "per minute", "1.5 per minute"])
def test_bad_rates(text):
    with pytest.raises(ValueError, match="a rate is written like"):
        parse_rate(text)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8080", Address("127.0.0.1", 8080)),
        ("[::1]:0", Address("::1", 0)),
        ("relay.example.com:443", Address("relay.example.com", 443)),
    ],
)
def test_addresses_are_written_as_they_are_read(text, address):
    assert parse_address(text) == address
    assert str(address) == text


@pytest.mark.parametrize("text", ["8080", ":8080", "127.0.0.1", "::1:8080", "127.0.0.1:65536", "127.0.0.1:http"])
def test_bad_addresses(text):
    with pytest.raises(ValueError, match="an address is written like"):
        parse_address(text)


def test_lists():
    assert parse_list("a, b,,c ") == ("a", "b", "c")
    assert parse_list("") == ()


def test_values_that_are_parsed_already_stay():
    assert parse_duration(5) == 5
    assert parse_size(5) == 5
    assert parse_rate(Rate(1, 60)) == Rate(1, 60)
    assert parse_address(Address("h", 1)) == Address("h", 1)
    assert parse_list(["a"]) == ["a"]


@given(st.integers(0, 10**9))
def test_a_written_duration_is_read_back(milliseconds):
    assert parse_duration(format_duration(milliseconds / 1000)) == pytest.approx(milliseconds / 1000)


@given(st.integers(0, 1 << 40))
def test_a_written_size_is_read_back(size):
    assert parse_size(format_size(size)) == size


@given(st.builds(Rate, st.integers(1, 10**6), st.sampled_from([1.0, 60.0, 3600.0])))
def test_a_written_rate_is_read_back(rate):
    assert parse_rate(format_rate(rate)) == rate
