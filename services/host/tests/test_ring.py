from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bothy_host.ring import Ring


@given(st.integers(1, 50), st.lists(st.binary(max_size=20)), st.integers(0, 300), st.integers(0, 300))
def test_a_ring_is_the_end_of_everything(capacity, parts, start, end):
    ring, everything = Ring(capacity), b"".join(parts)
    for part in parts:
        ring.append(part)
    assert ring.end == len(everything)
    assert ring.start == max(0, len(everything) - capacity)
    assert ring.slice(start, end) == everything[max(start, ring.start) : max(end, ring.start)]


def test_what_must_stay_stays():
    ring = Ring(4)
    ring.append(b"abcdef", keep=1)
    assert (ring.start, ring.slice(0, 9)) == (1, b"bcdef")
    ring.append(b"gh", keep=6)
    assert (ring.start, ring.slice(0, 9)) == (4, b"efgh")
