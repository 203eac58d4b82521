from uuid import UUID

import pytest

from bothy_device.failure import Failure
from bothy_device.known_hosts import KnownHosts, Pin, checked_fingerprint

SERVER = "https://relay.example.com"
LAB = UUID("0190a1b2-0000-7000-8000-000000000001")
OTHER = UUID("0190a1b2-0000-7000-8000-000000000002")
KEY, NEW = "SHA256:" + "a" * 43, "SHA256:" + "b" * 43


@pytest.fixture
def known(tmp_path):
    return KnownHosts(tmp_path / "known_hosts")


def check(known, fingerprint, *, host_id=LAB, name="lab-1", server=SERVER, named=None, strict=False):
    return known.check(Pin(server, host_id, fingerprint, name), named=named, strict=strict)


def test_the_first_key_is_pinned_and_shown(known):
    assert check(known, KEY) == f"first connection to lab-1: pinned its key {KEY}"
    assert known.pins() == [Pin(SERVER, LAB, KEY, "lab-1")]
    assert check(known, KEY) is None


def test_a_changed_key_is_refused_with_both_and_the_command(known):
    check(known, KEY)
    with pytest.raises(Failure) as refused:
        check(known, NEW)
    assert f"pinned {KEY}, shown now {NEW}" in refused.value.message
    assert refused.value.message.endswith(f"bothy hosts trust {LAB} {NEW}")
    assert known.pins() == [Pin(SERVER, LAB, KEY, "lab-1")]


def test_trusting_the_new_key_accepts_it(known):
    check(known, KEY)
    known.trust(Pin(SERVER, LAB, NEW, "lab-1"))
    assert check(known, NEW, strict=True) is None
    with pytest.raises(Failure):
        check(known, KEY)


def test_another_machine_under_a_known_name_is_a_changed_key(known):
    check(known, KEY)
    with pytest.raises(Failure, match="HAS CHANGED"):
        check(known, NEW, host_id=OTHER)


def test_a_renamed_host_keeps_its_pin(known):
    check(known, KEY)
    assert check(known, KEY, name="lab-2") is None
    with pytest.raises(Failure):
        check(known, NEW, name="lab-2")


def test_each_server_has_its_own_pins(known):
    check(known, KEY)
    assert check(known, NEW, server="https://other.example.com") is not None


def test_strict_takes_no_first_key(known):
    with pytest.raises(Failure, match=f"not known yet: {KEY}; .*: bothy hosts trust {LAB} {KEY}"):
        check(known, KEY, strict=True)
    assert known.pins() == []


@pytest.mark.parametrize("strict", [True, False])
def test_a_named_key_is_the_only_one(known, strict):
    with pytest.raises(Failure, match="nothing was opened"):
        check(known, NEW, named=KEY, strict=strict)
    assert check(known, KEY, named=KEY, strict=strict) is None
    assert check(known, KEY, strict=True) is None


def test_lines_of_a_person_stay_readable(known, tmp_path):
    (tmp_path / "known_hosts").write_text(f"# mine\n\n{SERVER} {LAB} {KEY} the blue lab\n")
    assert known.pins() == [Pin(SERVER, LAB, KEY, "the blue lab")]


def test_a_broken_line_is_an_error_and_no_lost_pin(known, tmp_path):
    (tmp_path / "known_hosts").write_text(f"{SERVER} {LAB}\n")
    with pytest.raises(Failure, match="line 1: not a pinned host"):
        check(known, KEY)


def test_a_name_cannot_add_a_line(known):
    check(known, KEY, name=f"lab\n{SERVER} {OTHER} {KEY} x")
    assert len(known.pins()) == 1


@pytest.mark.parametrize("bad", ["", "SHA256:", KEY + "a", KEY[:-1], KEY + "\n", "MD5:" + "a" * 43])
def test_what_is_no_fingerprint(bad):
    assert checked_fingerprint(KEY) == KEY
    with pytest.raises(Failure, match="no fingerprint"):
        checked_fingerprint(bad)
