"""What does not fit is dropped whole, and a paste that was cut ends there."""

from hypothesis import given
from hypothesis import strategies as st

from bothy_device.escapes import EscapeParser
from bothy_device.keeping import PASTE_ENDS, Keeping

PASTE_BEGINS = b"\x1b[200~"


def test_a_sequence_is_kept_whole_or_not_at_all():
    keeping = Keeping()
    assert keeping.admit(b"\x1b[A", pasting=False, room=3) == (b"\x1b[A", False)
    assert keeping.admit(b"\x1b[A", pasting=False, room=2) == (b"", True)
    assert keeping.admit(b"x", pasting=False, room=2) == (b"x", False)
    assert keeping.admit(b"x" * 1000, pasting=False, room=None) == (b"x" * 1000, False)


def test_a_paste_that_is_cut_ends_where_it_was_cut_and_its_rest_is_never_typed():
    keeping = Keeping()
    assert keeping.admit(PASTE_BEGINS + b"safe", pasting=True, room=100) == (PASTE_BEGINS + b"safe", False)
    assert keeping.admit(b"more\r", pasting=True, room=2) == (PASTE_ENDS, True)
    assert keeping.admit(b"rm -r x\r", pasting=True, room=None) == (b"", True)
    assert keeping.admit(b"end\r" + PASTE_ENDS + b"ls\r", pasting=False, room=None) == (b"ls\r", False)
    assert keeping.admit(b"x", pasting=False, room=None) == (b"x", False)


def test_of_a_paste_whose_beginning_did_not_fit_nothing_is_typed():
    keeping = Keeping()
    assert keeping.admit(PASTE_BEGINS + b"much", pasting=True, room=3) == (b"", True)
    assert keeping.admit(b"x\r", pasting=True, room=3) == (b"", True)
    assert keeping.admit(PASTE_ENDS, pasting=False, room=3) == (b"", False)


PIECES = st.lists(
    st.tuples(
        st.sampled_from([b"k", b"ls\r", PASTE_BEGINS, PASTE_ENDS, b"pasted\r"]), st.sampled_from([None, 0, 3, 100])
    )
)


@given(PIECES)
def test_what_is_kept_holds_no_paste_without_an_end_unless_one_is_under_way(pieces):
    parser, keeping, kept = EscapeParser(b""), Keeping(), b""
    for keys, room in pieces:
        for part in parser.feed(keys):
            kept += keeping.admit(part.data, pasting=parser.pasting, room=room)[0]
    again = EscapeParser(b"")
    list(again.feed(kept))
    assert not again.pasting or parser.pasting
