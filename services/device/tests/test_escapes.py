import itertools

from hypothesis import given
from hypothesis import strategies as st

from bothy_device.escapes import Command, EscapeParser, Keys

FRAGMENTS = [
    b"~",
    b"~~",
    b"~.",
    b"~D",
    b"~?",
    b"~\x1a",
    b"\r",
    b"\n",
    b"ls",
    b"\x1b[200~",
    b"\x1b[201~",
    b"\x1b",
    b"[20",
]


def parse(*pieces: bytes, escape: bytes = b"~") -> list[bytes | Command]:
    parser = EscapeParser(escape)
    out: list[bytes | Command] = []
    for each in itertools.chain.from_iterable(parser.feed(piece) for piece in pieces):
        match each:
            case Keys(data) if out and isinstance(out[-1], bytes):
                out[-1] += data
            case Keys(data):
                out.append(data)
            case _:
                out.append(each)
    return out


def test_commands_at_the_start_of_a_line():
    assert parse(b"~.") == [Command.LEAVE]
    assert parse(b"ls\r~D") == [b"ls\r", Command.DROP]
    assert parse(b"ls\n~?ls") == [b"ls\n", Command.HELP, b"ls"]
    assert parse(b"\r~\x1a") == [b"\r", Command.SUSPEND]


def test_a_line_still_begins_after_a_command():
    assert parse(b"~?~.") == [Command.HELP, Command.LEAVE]


def test_two_tildes_are_one():
    assert parse(b"~~.") == [b"~."]
    assert parse(b"~~~.") == [b"~~."]


def test_a_tilde_elsewhere_is_a_tilde():
    assert parse(b"cd ~.") == [b"cd ~."]
    assert parse(b"~/bin\r") == [b"~/bin\r"]


def test_a_tilde_waits_for_the_next_byte():
    assert parse(b"\r~") == [b"\r"]
    assert parse(b"\r~", b"\r~.") == [b"\r~\r", Command.LEAVE]


def test_pasted_text_is_never_an_escape():
    paste = b"\x1b[200~one\r~.two\r~D\x1b[201~"
    assert parse(paste) == [paste]
    assert parse(paste + b"\r~.") == [paste + b"\r", Command.LEAVE]


def test_another_character_or_none():
    assert parse(b"~.\r%.", escape=b"%") == [b"~.\r", Command.LEAVE]
    assert parse(b"~.\r~.", escape=b"") == [b"~.\r~."]
    assert parse(b"\r^.", escape=b"^") == [b"\r", Command.LEAVE]


@given(st.lists(st.sampled_from(FRAGMENTS) | st.binary(max_size=3), max_size=12), st.data())
def test_every_chunking_gives_the_same(fragments, data):
    whole = b"".join(fragments)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    pieces = [whole[a:b] for a, b in itertools.pairwise([0, *cuts, len(whole)])]
    assert parse(*pieces) == parse(whole)
    assert parse(*(whole[i : i + 1] for i in range(len(whole)))) == parse(whole)


@given(st.binary())
def test_without_the_escape_character_every_byte_passes(data):
    plain = data.replace(b"~", b"")
    assert b"".join(each for each in parse(plain) if isinstance(each, bytes)) == plain


def test_a_large_paste_of_short_lines_is_fast_enough_to_be_read():
    line = b"~x\r" * 20_000
    assert parse(line) == [line]
