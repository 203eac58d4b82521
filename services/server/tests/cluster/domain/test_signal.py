"""The codec of signals. Run this file with a number of seconds to fuzz the decoder for that long."""

import json
import random
import re
import sys
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar, get_args
from uuid import UUID

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bothy_server.cluster.domain.signal import PAYLOAD_LIMIT_BYTES, SignalMalformed, SignalTable
from bothy_server.hosts.domain.signals import HostClose, HostGone, HostPresent
from bothy_server.kernel.unit import EventType, Signal
from bothy_server.terminal.domain.signals import SessionOpen, SessionPaired, SessionRedial
from bothy_wire.frames import Frame
from bothy_wire.ids import HostId, SessionId

KINDS = (SessionOpen, SessionPaired, SessionRedial, HostClose, HostPresent, HostGone)
TABLE = SignalTable(KINDS)
HOST, OTHER = UUID("01890a5d-ac96-774b-bcce-b302099a8057"), UUID("01890a5d-ac96-774b-bcce-b302099a8058")
OPEN = SessionOpen(HostId(HOST), SessionId(OTHER))
PAYLOAD = f'{{"kind":"terminal.session_open","host_id":"{HOST}","session_id":"{OTHER}"}}'
PAGE = Path(__file__).parents[5] / "docs" / "spec" / "signals.md"


def signals():
    return st.sampled_from(KINDS).flatmap(lambda kind: st.builds(kind, *(st.uuids() for _ in fields(kind))))


@given(signals())
def test_signal_codec(signal):
    payload = TABLE.encode(signal)
    assert TABLE.decode(payload) == signal
    assert json.loads(payload) == {"kind": signal.kind} | {f.name: str(getattr(signal, f.name)) for f in fields(signal)}
    assert " " not in payload


def test_signal_codec_form():
    assert TABLE.encode(OPEN) == PAYLOAD


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param("", id="empty"),
        pytest.param("ping", id="no JSON"),
        pytest.param(PAYLOAD + " x", id="trailing text"),
        pytest.param("[]", id="no object"),
        pytest.param("null", id="null itself"),
        pytest.param("[" * 7000, id="brackets in brackets"),
        pytest.param("1" * 7000, id="a number too long for int"),
        pytest.param(PAYLOAD[:-1] + ',"x":NaN}', id="a constant that is no JSON"),
        pytest.param(f'{{"host_id":"{HOST}"}}', id="no kind"),
        pytest.param('{"kind":null}', id="null kind"),
        pytest.param('{"kind":1}', id="kind no text"),
        pytest.param(f'{{"kind":"terminal.typing","host_id":"{HOST}"}}', id="unknown kind"),
        pytest.param('{"kind":"terminal."}', id="bare prefix"),
        pytest.param(PAYLOAD.replace('"session_id"', '"conn_id"'), id="another kind's id"),
        pytest.param(f'{{"kind":"terminal.session_open","host_id":"{HOST}"}}', id="missing id"),
        pytest.param(PAYLOAD[:-1] + f',"conn_id":"{HOST}"}}', id="extra id"),
        pytest.param(PAYLOAD[:-1] + ',"name":"lab-1"}', id="unknown field"),
        pytest.param(PAYLOAD[:-1] + f',"host_id":"{OTHER}"}}', id="the same field twice"),
        pytest.param(PAYLOAD.replace(f'"{HOST}"', "null"), id="null id"),
        pytest.param(PAYLOAD.replace(f'"{HOST}"', "7"), id="id no text"),
        pytest.param(PAYLOAD.replace(str(HOST), "lab-1"), id="id no UUID"),
        pytest.param(PAYLOAD.replace(str(HOST), str(HOST).upper()), id="upper case"),
        pytest.param(PAYLOAD.replace(str(HOST), HOST.hex), id="without hyphens"),
        pytest.param(PAYLOAD.replace(str(HOST), f"{HOST}\\n"), id="newline behind"),
        pytest.param(PAYLOAD + " " * PAYLOAD_LIMIT_BYTES, id="longer than a notification can be"),
    ],
)
def test_signal_codec_refuses(payload):
    with pytest.raises(SignalMalformed):
        TABLE.decode(payload)


@pytest.mark.parametrize("kind", ["typing.started", "cluster.echo", "", "Terminal.session_open", "terminal"])
def test_signal_codec_leaves_foreign_kinds_alone(kind):
    assert TABLE.decode(json.dumps({"kind": kind, "anything": [None]})) is None


def test_signal_malformed_names_no_content():
    with pytest.raises(SignalMalformed) as caught:
        TABLE.decode('{"kind":"terminal.hush-hush"}')
    assert "hush" not in str(caught.value)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.one_of(
        st.text(),
        st.binary().map(lambda raw: raw.decode(errors="surrogateescape")),
        st.tuples(st.integers(0, len(PAYLOAD)), st.integers(0, len(PAYLOAD)), st.text(max_size=8)).map(
            lambda cut: PAYLOAD[: cut[0]] + cut[2] + PAYLOAD[cut[1] :]
        ),
        st.dictionaries(
            st.sampled_from(["kind", "host_id", "session_id", "conn_id", "x"]),
            st.one_of(
                st.sampled_from([kind.kind for kind in KINDS]),
                st.uuids().map(str),
                st.none(),
                st.text(),
                st.lists(st.none()),
            ),
        ).map(json.dumps),
    )
)
@example("[" * 5000)
@example("9" * 5000)
@example('{"kind":"\\ud800"}')
def test_fuzz_decode_signal(payload):
    fuzz_decode_signal(payload)


def fuzz_decode_signal(payload):
    """An error, somebody else's, or a signal that encodes back to the same; never anything else."""
    try:
        signal = TABLE.decode(payload)
    except SignalMalformed:
        return
    if signal is not None:
        assert json.loads(TABLE.encode(signal)) == json.loads(payload)


def test_signal_payload_bound():
    longest = max(len(TABLE.encode(kind(*(UUID(int=2**128 - 1) for _ in fields(kind)))).encode()) for kind in KINDS)
    assert longest < PAYLOAD_LIMIT_BYTES


def test_signal_table_refuses_what_is_no_signal_of_ids():
    @dataclass(frozen=True, slots=True)
    class Named(Signal):
        kind: ClassVar[str] = "terminal.named"
        name: str

    @dataclass(frozen=True, slots=True)
    class Foreign(Signal):
        kind: ClassVar[str] = "typing.started"
        host_id: UUID

    for kinds in ([Named], [Foreign], [HostClose, HostClose]):
        with pytest.raises(ValueError):
            SignalTable(kinds)


def test_signals_are_no_events_and_no_frames():
    known = {*get_args(EventType), *(frame.__struct_config__.tag for frame in Frame.__subclasses__())}
    assert not known & {kind.kind for kind in KINDS}


def test_signals_page_lists_the_kinds_of_the_code():
    rows = re.findall(r"^\| `(terminal\.\w+)` \| ([^|]+) \|", PAGE.read_text(), re.MULTILINE)
    assert {kind: ids.replace("`", "").replace(",", "").split() for kind, ids in rows} == {
        kind.kind: [field.name for field in fields(kind)] for kind in KINDS
    }
    assert f"{PAYLOAD_LIMIT_BYTES} bytes" in PAGE.read_text()


def main(seconds):
    end, tries = time.monotonic() + seconds, 0
    source = random.Random()
    while time.monotonic() < end:
        test_fuzz_decode_signal.hypothesis.fuzz_one_input(source.randbytes(source.randrange(512)))
        tries += 1
    sys.stdout.write(f"{tries} inputs in {seconds} s, no finding\n")


if __name__ == "__main__":
    main(float(sys.argv[1]))
