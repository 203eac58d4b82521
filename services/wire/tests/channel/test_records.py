"""The codec of records, their encryption in order, and REKEY."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothy_wire.channel import records
from bothy_wire.channel.noise import TAG_BYTES, CipherState
from bothy_wire.channel.records import Opener, Sealer, decode_record, encode_record
from bothy_wire.errors import ChannelError, LocalError
from bothy_wire.limits import RECORD_BYTES, REKEY_RECORDS

KEY = bytes(range(32))
ANY_RECORD = st.one_of(
    st.builds(records.Data, st.binary(min_size=1, max_size=300)),
    st.builds(records.Ack, st.integers(0, 2**64 - 1)),
    st.builds(records.Resize, st.integers(0, 65535), st.integers(0, 65535)),
    st.builds(records.Exit, st.integers(0, 255)),
    st.builds(records.Repaint, st.binary(max_size=300), st.booleans()),
    st.just(records.Ping()),
    st.just(records.Pong()),
    st.builds(records.Notice, st.text(min_size=1, max_size=200)),
)


@given(ANY_RECORD)
def test_round_trip(record):
    assert decode_record(encode_record(record)) == record


@given(st.binary(max_size=40))
def test_what_decodes_is_the_only_spelling(raw):
    try:
        record = decode_record(raw)
    except ChannelError:
        return
    if record is None:
        assert raw[0] & 0x80
    else:
        assert encode_record(record) == raw


@pytest.mark.parametrize(
    "record",
    [
        records.Data(bytes(records.DATA_BYTES)),
        records.Repaint(bytes(records.REPAINT_BYTES), last=True),
        records.Notice("n" * records.NOTICE_BYTES),
    ],
)
def test_largest(record):
    raw = encode_record(record)
    assert len(raw) <= RECORD_BYTES
    assert decode_record(raw) == record


@pytest.mark.parametrize(
    "record",
    [
        records.Data(b""),
        records.Data(bytes(records.DATA_BYTES + 1)),
        records.Ack(-1),
        records.Ack(2**64),
        records.Resize(-1, 1),
        records.Resize(1, 65536),
        records.Exit(256),
        records.Repaint(bytes(records.REPAINT_BYTES + 1), last=False),
        records.Notice(""),
        records.Notice("ü" * records.NOTICE_BYTES),
    ],
)
def test_our_own_values_are_checked(record):
    with pytest.raises(LocalError):
        encode_record(record)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        bytes(RECORD_BYTES + 1),
        b"\x00",
        b"\x01",
        b"\x02" + bytes(7),
        b"\x02" + bytes(9),
        b"\x03" + bytes(3),
        b"\x03" + bytes(5),
        b"\x04",
        b"\x04" + bytes(2),
        b"\x05",
        b"\x05\x02",
        b"\x06\x00",
        b"\x07\x00",
        b"\x08",
        b"\x08\xff",
        b"\x08" + b"n" * (records.NOTICE_BYTES + 1),
        b"\x09",
        b"\x7f",
    ],
)
def test_malformed(raw):
    with pytest.raises(ChannelError):
        decode_record(raw)


@pytest.mark.parametrize("kind", [0x80, 0xFF])
def test_unknown_with_the_high_bit_is_ignored(kind):
    assert decode_record(bytes([kind]) + b"anything") is None


def directions(rekey_records: int = REKEY_RECORDS) -> tuple[Sealer, Opener]:
    return Sealer(CipherState(KEY), rekey_records), Opener(CipherState(KEY), rekey_records)


@given(st.lists(ANY_RECORD, min_size=1, max_size=30), st.integers(1, 7))
def test_records_open_in_order_over_every_rekey(sent, every):
    sealer, opener = directions(every)
    assert [opener.open(sealer.seal(record)) for record in sent] == sent


@given(st.data())
def test_what_is_not_the_next_record_does_not_open(data):
    sealer, opener = directions()
    messages = [sealer.seal(records.Data(bytes([i]))) for i in range(5)]
    done = data.draw(st.integers(0, 4))
    for message in messages[:done]:
        opener.open(message)
    index = data.draw(st.integers(0, 4))
    wrong = messages[index] if index != done else messages[done][: data.draw(st.integers(0, len(messages[done]) - 1))]
    with pytest.raises(ChannelError):
        opener.open(wrong)
    assert opener.open(messages[done]) == records.Data(bytes([done]))


def test_the_filling_of_a_cut_message_does_not_open():
    sealer, opener = directions()
    message = sealer.seal(records.Data(b"x" * 100))
    with pytest.raises(ChannelError):
        opener.open(message[:40] + bytes(len(message) - 40))


def test_too_long_a_message_is_refused_before_it_is_opened():
    sender, opener = CipherState(KEY), Opener(CipherState(KEY))
    with pytest.raises(ChannelError, match="length"):
        opener.open(sender.encrypt(b"\x01" + bytes(RECORD_BYTES)))
    assert RECORD_BYTES + TAG_BYTES <= 65535


def test_rekey_is_applied_after_the_65536th_record_and_not_before():
    sealer, opener = directions()
    plain = CipherState(KEY)
    for _ in range(REKEY_RECORDS - 1):
        opener.open(sealer.seal(records.Ping()))
    plain.nonce = REKEY_RECORDS - 1
    last = sealer.seal(records.Ping())
    assert plain.encrypt(encode_record(records.Ping())) == last
    opener.open(last)
    first = sealer.seal(records.Pong())
    stale = CipherState(KEY)
    stale.nonce = REKEY_RECORDS
    with pytest.raises(ChannelError):
        stale.decrypt(first)
    assert opener.open(first) == records.Pong()


def test_the_two_directions_count_for_themselves():
    sealer, opener = directions(rekey_records=3)
    other_sealer, other_opener = directions(rekey_records=3)
    for _ in range(10):
        opener.open(sealer.seal(records.Ping()))
    assert other_opener.open(other_sealer.seal(records.Ping())) == records.Ping()
