"""What the line says, and what keys mean while it stands there."""

import pytest

from bothy_device.outage import BACK_FOR, NETWORK, RELAY, SHOWN_AFTER, Choice, Kept, Outage
from bothy_device.reconnect import Phase, State
from bothy_wire.close_codes import CloseCode, retry_of

NOW = 100.0


def state(phase=Phase.WAITING, due=105.0):
    return State(phase, token_until=160.0, reached=True, due=due)


@pytest.fixture
def outage():
    made = Outage("lab-1", person=True)
    made.begin(NOW, RELAY)
    return made


def test_a_short_outage_is_nobodys_business(outage):
    assert outage.deadline(state(), NOW) == NOW + SHOWN_AFTER
    assert outage.line(state(), Kept(), NOW + 0.9) is None
    for keys in (b"\r", b"\x03", b"ls"):
        assert outage.choice(keys, state(), Kept(), NOW + 0.9) is Choice.KEEP
    outage.end(NOW + 0.9)
    assert outage.line(state(Phase.UP), Kept(), NOW + 1) is None
    assert outage.deadline(state(Phase.UP), NOW + 1) is None


@pytest.mark.parametrize(
    ("phase", "waiting", "words"),
    [
        (Phase.WAITING, 0, "the relay is out of reach; next try in 4 s; Enter tries now, Ctrl-C gives up"),
        (Phase.WAITING, 12, "the relay is out of reach; next try in 4 s; 12 keys waiting, Ctrl-C drops them"),
        (Phase.DIALLING, 0, "the relay is out of reach; trying now; Ctrl-C gives up"),
        (Phase.ATTACHING, 3, "the relay is out of reach; trying now; 3 keys waiting, Ctrl-C drops them"),
        (Phase.UP, 0, "the relay is out of reach; waiting for lab-1; Ctrl-C gives up"),
        (Phase.REPLACED, 0, "continued on another device; Enter takes it back, Ctrl-C leaves"),
    ],
)
def test_the_words(outage, phase, waiting, words):
    _, shown = outage.line(state(phase), Kept(waiting, waiting), NOW + 1.5)
    assert shown == words
    assert len(shown) <= 78 or waiting


def test_the_host_that_is_away_is_named_once(outage):
    outage.begin(NOW + 1, outage.away())
    assert outage.line(state(Phase.UP), Kept(), NOW + 2)[1] == "lab-1 is away; waiting; Ctrl-C gives up"


def test_a_countdown_looks_again_when_its_number_changes(outage):
    assert outage.deadline(state(due=105.0), NOW + 1) == 102.0
    assert outage.deadline(state(due=105.0), NOW + 1.5) == 102.0
    assert outage.deadline(state(due=105.0), 104.0) is None
    assert outage.deadline(state(Phase.DIALLING), 104.0) is None


def test_a_new_cause_does_not_restart_the_outage(outage):
    outage.begin(NOW + 5, NETWORK)
    assert outage.line(state(Phase.DIALLING), Kept(), NOW + 5)[1].startswith("your network is down")
    outage.end(NOW + 7.2)
    assert outage.line(state(Phase.UP), Kept(), NOW + 7.2) == ("back", "reconnected after 7 s")
    assert outage.deadline(state(Phase.UP), NOW + 7.2) == NOW + 7.2 + BACK_FOR
    assert outage.line(state(Phase.UP), Kept(), NOW + 7.2 + BACK_FOR) is None


def test_a_new_outage_takes_the_good_news_away(outage):
    outage.end(NOW + 5)
    outage.begin(NOW + 6, NETWORK)
    assert outage.line(state(), Kept(), NOW + 6) is None


@pytest.mark.parametrize(
    ("keys", "waiting", "choice"),
    [
        (b"\r", 0, Choice.TRY),
        (b"\r\r", 0, Choice.TRY),
        (b"\r", 4, Choice.KEEP_AND_TRY),
        (b"\x03", 0, Choice.GIVE_UP),
        (b"\x03\x03", 0, Choice.GIVE_UP),
        (b"\x03", 4, Choice.DROP),
        (b"ls\r", 0, Choice.KEEP),
        (b"\rls", 0, Choice.KEEP),
        (b"\x03ls", 0, Choice.KEEP),
        (b"\x1b[200~\r\x1b[201~", 0, Choice.KEEP),
        (b"\n", 0, Choice.KEEP),
    ],
)
def test_keys_while_the_line_stands_there(outage, keys, waiting, choice):
    for phase in (Phase.WAITING, Phase.DIALLING, Phase.ATTACHING, Phase.UP):
        assert outage.choice(keys, state(phase), Kept(waiting, waiting), NOW + 1) is choice


def test_keys_that_are_on_their_way_cannot_be_dropped_and_enter_ends_their_line(outage):
    kept = Kept(waiting=9, unsent=0)
    assert outage.line(state(), kept, NOW + 1)[1].endswith("; 9 keys waiting, Ctrl-C gives up")
    assert outage.choice(b"\x03", state(), kept, NOW + 1) is Choice.GIVE_UP
    assert outage.choice(b"\r", state(), kept, NOW + 1) is Choice.KEEP_AND_TRY


@pytest.mark.parametrize(("keys", "choice"), [(b"\r", Choice.TRY), (b"\x03", Choice.GIVE_UP), (b"x", Choice.REFUSE)])
@pytest.mark.parametrize("waiting", [0, 9])
def test_keys_for_a_session_that_another_device_holds(outage, keys, waiting, choice):
    assert outage.choice(keys, state(Phase.REPLACED), Kept(waiting, waiting), NOW) is choice


def test_without_a_person_there_is_one_line_and_no_key():
    outage = Outage("lab-1", person=False)
    outage.begin(NOW, RELAY)
    lines = {outage.line(state(phase), Kept(5, 5), NOW + 2)[1] for phase in (Phase.WAITING, Phase.DIALLING, Phase.UP)}
    assert lines == {"the relay is out of reach; trying to reconnect"}
    assert outage.deadline(state(), NOW + 2) is None
    for keys in (b"\r", b"\x03", b"x"):
        assert outage.choice(keys, state(), Kept(), NOW + 2) is Choice.KEEP


@pytest.mark.parametrize("code", [code for code in (*CloseCode, 1001) if retry_of(code, "stream") != "never"])
def test_every_code_that_leads_back_has_a_cause_that_fits_on_the_line(outage, code):
    outage.begin(NOW, outage.closed(code))
    _, words = outage.line(state(due=NOW + 16), Kept(), NOW + 1)
    assert words.endswith("; next try in 15 s; Enter tries now, Ctrl-C gives up")
    assert len(words) <= 78


def test_a_long_name_leaves_room_for_the_keys():
    outage = Outage("a-very-long-name-of-a-host-in-a-rack", person=True)
    outage.begin(NOW, outage.away())
    assert len(outage.line(state(due=NOW + 16), Kept(), NOW + 1)[1]) <= 78
