"""The keys of one process: published at once, signing after the lead, kept when their files go."""

from datetime import timedelta

import pytest

from bothy_server.identity.adapters.keystore import ring as ring_module
from bothy_server.identity.adapters.keystore.ring import KeyRing
from bothy_server.identity.adapters.keystore.store import KeyStoreError, add_key, load_keys, retire_key, store_key

LEAD_S = 3600
LEAD = timedelta(seconds=LEAD_S)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "keys"


@pytest.fixture
def first(folder, clock):
    return add_key(folder, clock.now(), clock.now())


@pytest.fixture
def ring(folder, clock, first):
    return KeyRing(folder, clock, LEAD_S, leeway=5)


def published(ring):
    return {each.kid for each in ring.published}


def words(ring):
    return [each.words for each in ring.troubles()]


# ---- the lead -------------------------------------------------------------------------------------------------------


def test_a_key_that_came_late_is_published_for_the_lead_before_it_signs(ring, folder, clock, first):
    late = add_key(folder, clock.now() - 2 * LEAD, clock.now() - LEAD)
    ring.take(load_keys(folder))
    assert published(ring) == {first.kid, late.kid}
    clock.advance(LEAD_S - 10)
    assert ring.signs == first
    assert words(ring) == []


def test_a_key_whose_time_came_before_its_lead_is_over_is_told(ring, folder, clock, first):
    hasty = add_key(folder, clock.now(), clock.now() + timedelta(seconds=1))
    ring.take(load_keys(folder))
    clock.advance(60)
    assert ring.signs == first
    assert words(ring) == [f"{hasty.kid} should sign by now and waits: published here for 60 s of 3600 s"]
    clock.advance(LEAD_S - 60)
    assert (ring.signs, words(ring)) == (hasty, [])


def test_the_lead_is_counted_by_the_steady_clock(ring, folder, clock, first, monkeypatch):
    following = add_key(folder, clock.now(), clock.now() + LEAD)
    ring.take(load_keys(folder))
    ahead = clock.now() + 2 * LEAD
    monkeypatch.setattr(clock, "now", lambda: ahead)
    assert ring.signs == first
    clock.advance(LEAD_S)
    assert ring.signs == following


def test_a_process_that_starts_trusts_what_lay_in_the_folder_for_the_lead(folder, clock, first, monkeypatch):
    following = add_key(folder, clock.now(), clock.now() + timedelta(seconds=1))
    clock.advance(1)
    for age, signs in ((LEAD_S - 1, first), (LEAD_S, following)):
        ages = {first.kid: 2 * LEAD_S, following.kid: age}
        monkeypatch.setattr(ring_module, "file_ages", lambda _, ages=ages: ages)
        assert KeyRing(folder, clock, LEAD_S, leeway=5).signs == signs


def test_without_a_key_that_may_sign_nothing_starts(folder, clock):
    add_key(folder, clock.now(), clock.now() + LEAD)
    with pytest.raises(KeyStoreError, match="no signing key may sign yet"):
        KeyRing(folder, clock, LEAD_S, leeway=5)


def test_a_clock_that_went_back_leaves_a_running_process_its_key(ring, clock, first, monkeypatch):
    behind = clock.now() - LEAD
    monkeypatch.setattr(clock, "now", lambda: behind)
    assert ring.signs == first
    assert words(ring) == [f"{first.kid} was made by a clock 3600 s ahead"]


# ---- the other nodes ------------------------------------------------------------------------------------------------


def test_no_key_begins_to_sign_that_another_node_lacks(ring, folder, clock, first):
    following = add_key(folder, clock.now(), clock.now() + LEAD)
    ring.take(load_keys(folder))
    ring.hear({"n2": [first.kid]}, {first.kid})
    clock.advance(LEAD_S)
    assert ring.signs == first
    assert words(ring) == [
        f"node n2 lacks {following.kid}",
        f"{following.kid} should sign by now and waits: not everywhere",
    ]
    ring.hear({"n2": [first.kid, following.kid]}, {first.kid})
    assert (ring.signs, words(ring)) == (following, [])


def test_a_key_of_another_node_is_missed_before_it_signs_and_after(ring, first):
    ring.hear({"n2": [first.kid, "theirs"]}, {first.kid})
    assert ring.misses_a_key()
    assert words(ring) == ["node n2 has theirs, which is not here"]
    ring.hear({"n2": [first.kid, "theirs"], "n3": [first.kid, "theirs"]}, {"theirs"})
    assert words(ring) == ["another node signs with theirs"]
    ring.hear({}, ())
    assert not ring.misses_a_key()
    assert words(ring) == []


def test_a_key_that_is_retired_on_one_copy_alone_is_told_and_not_signed_with(ring, folder, clock, first):
    unaware = KeyRing(folder, clock, LEAD_S, leeway=5)
    stolen = add_key(folder, clock.now(), clock.now() + LEAD)
    for each in (ring, unaware):
        each.take(load_keys(folder))
    clock.advance(LEAD_S)
    assert unaware.signs == stolen
    retire_key(folder, stolen, clock.now())
    ring.take(load_keys(folder))
    ring.hear({"n2": unaware.ids}, {stolen.kid})
    assert words(ring) == [f"node n2 takes tokens of {stolen.kid}, which is retired here"]
    unaware.hear({"n1": ring.ids}, {ring.signs.kid})
    assert unaware.signs == ring.signs == first
    assert words(unaware)[0] == f"node n1 lacks {stolen.kid}"


# ---- the folder -----------------------------------------------------------------------------------------------------


def test_taking_tells_whether_hosts_have_to_be_told(ring, folder, clock):
    assert not ring.take(load_keys(folder))
    add_key(folder, clock.now(), clock.now() + LEAD)
    assert ring.take(load_keys(folder))
    assert not ring.take(load_keys(folder))


def test_a_key_whose_file_is_gone_stays_until_the_process_ends(ring, folder, clock, first):
    add_key(folder, clock.now(), clock.now() + LEAD)
    ring.take(load_keys(folder))
    (folder / f"{first.kid}.json").unlink()
    assert not ring.take(load_keys(folder))
    assert ring.signs == first
    assert words(ring) == [f"the file of {first.kid} is gone; it is held until this process ends"]
    store_key(folder, first)
    ring.take(load_keys(folder))
    assert words(ring) == []


def test_a_folder_in_which_every_key_is_retired_leaves_the_keys_in_use(ring, folder, clock, first):
    retire_key(folder, first, clock.now())
    with pytest.raises(KeyStoreError, match="every signing key is retired; run `bothy-server keys rotate --now`"):
        ring.take(load_keys(folder))
    assert ring.signs == first
    assert published(ring) == {first.kid}
