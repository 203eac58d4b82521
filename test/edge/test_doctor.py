"""The doctor before a real edge, two real nodes and a real database: it names each fault, and nothing else."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bothy_kit import nginx
from bothy_kit.cluster import Cluster, cluster
from bothy_kit.pooler import transaction_pooler
from bothy_server import limits
from bothy_server.commands import bothy_server
from bothy_server.doctor.edge_probe import Edge, EdgeError
from bothy_server.doctor.examination import AT_THE_EDGE, Examination
from bothy_server.doctor.finding import CHECKS, Finding, Verdict
from bothy_server.doctor.report import as_json, table
from bothy_server.identity.adapters.keystore.store import add_key
from bothy_server.identity.adapters.keystore.tokens import KeyStoreTokens
from bothy_server.identity.domain.tokens import ProbeToken
from bothy_server.platform import clock

ELSEWHERE = "127.0.0.2"
"""The doctor's own address, so that it is not the edge's."""

SIGNED = ("buffering", "idle", "trusted_proxies", "origins")
Edit = Callable[[str], str]
STREAM_END = "            proxy_read_timeout 43260s;"


@asynccontextmanager
async def examined(
    url: str,
    folder: Path,
    *,
    conf: Edit = lambda text: text,
    upstreams: Edit = lambda text: text,
    trusted: str = "127.0.0.1",
    keys: Path | None = None,
) -> AsyncIterator[tuple[list[Finding], Cluster]]:
    """Two nodes behind an edge whose files were changed, and what the doctor finds there, with other keys where given."""
    kept: list[Path] = []

    def change(edge: Path) -> None:
        for name, edit in (("nginx.conf", conf), ("upstreams.conf", upstreams)):
            file = edge / name
            file.write_text(edit(file.read_text()))
        kept.append(edge / "nginx.conf")

    groups: dict[str, Any] = {
        "server": {"trusted_proxies": trusted, "public_origins": ["http://relay.example.com"]},
        "wire": {"ping_interval": "2s"},
    }
    async with cluster(url, folder, **groups) as running:
        nodes = [
            (f"api-{at}", each.node.public.host, each.node.public.port) for at, each in enumerate(running.nodes, 1)
        ]
        with nginx.running_edge(nodes, change=change) as made:
            settings = running.settings
            if keys is not None:
                add_key(keys, datetime.now(UTC), datetime.now(UTC))
                secrets = settings.secrets.model_copy(update={"signing_key_dir": keys})
                settings = settings.model_copy(update={"secrets": secrets})
            yield await Examination(settings, Edge(made.url, ELSEWHERE), kept[0]).run(), running


def red(findings: list[Finding]) -> set[str]:
    # Clients dial the origin of the tests, the doctor a port of this machine: that line has a test of its own.
    return {each.check for each in findings if each.verdict is Verdict.FAILED} - {"origins"}


def seen(findings: list[Finding], check: str) -> Finding:
    return next(each for each in findings if each.check == check)


async def test_nothing_is_wrong(database_url: str, tmp_path: Path) -> None:
    async with examined(database_url, tmp_path) as (findings, _):
        assert red(findings) == set(), table(findings)
        assert [each.check for each in findings] == list(CHECKS)
        assert {each.check for each in findings if each.verdict is Verdict.UNSEEN} == set()
        assert seen(findings, "origins").verdict is Verdict.FAILED
        told = json.loads(as_json(findings))
        assert told["ok"] is False
        assert next(each for each in told["checks"] if each["check"] == "origins")["fix"] == CHECKS["origins"].fix


def without_hash(text: str) -> str:
    return re.sub(r"    hash .*\n", "", text)


def over_the_uri(text: str) -> str:
    return text.replace("hash $bothy_terminal_session", "hash $request_uri")


def second_list(text: str) -> str:
    """The list of the data connections was not brought up to date."""
    block = re.search(r"upstream bothy_terminal_stream \{.*?\n\}\n", text, re.DOTALL)
    assert block is not None
    lines = block[0].replace("bothy_terminal_stream", "bothy_data").splitlines(keepends=True)
    servers = [line for line in lines if line.startswith("    server ")]
    return text + "".join(line for line in lines if line not in servers[1:])


def second_location(text: str) -> str:
    location = re.search(r"        location ~ .*?\n        \}\n", text, re.DOTALL)
    assert location is not None
    made = location[0].replace("(?:terminal|hosts)", "hosts").replace("bothy_terminal_stream;", "bothy_data;")
    return text.replace(location[0], made + location[0])


def without_zone(text: str) -> str:
    return text.replace("    zone bothy_terminal_stream 256k;\n", "")


def buffered(text: str) -> str:
    return text.replace(STREAM_END, "            proxy_buffering on;\n" + STREAM_END)


def short(text: str) -> str:
    return text.replace(STREAM_END, "            proxy_read_timeout 800ms;")


def without_upgrade(text: str) -> str:
    return text.replace("            proxy_set_header Upgrade $http_upgrade;\n", "")


PLANTED: dict[str, tuple[dict[str, Any], set[str]]] = {
    "no hash rule": ({"upstreams": without_hash}, {"routing.repeat", "conf.hash"}),
    "hash over the full URI": ({"upstreams": over_the_uri}, {"routing.pairs", "conf.hash"}),
    "two upstream lists": ({"upstreams": second_list, "conf": second_location}, {"routing.pairs", "conf.upstreams"}),
    "missing zone": ({"upstreams": without_zone}, {"conf.zone"}),
    "buffering": ({"conf": buffered}, {"buffering"}),
    "short timeout": ({"conf": short}, {"idle", "conf.timeout"}),
    "missing upgrade headers": ({"conf": without_upgrade}, {"upgrade"}),
    "wrong trusted proxy": ({"trusted": "10.0.0.1"}, {"trusted_proxies"}),
}


@pytest.mark.parametrize("planted", PLANTED)
async def test_a_planted_fault_is_named_and_no_other(planted: str, database_url: str, tmp_path: Path) -> None:
    changed, expected = PLANTED[planted]
    async with examined(database_url, tmp_path, **changed) as (findings, _):
        assert red(findings) == expected, table(findings)


async def test_a_transaction_pooler_before_listen_is_named(database_url: str, tmp_path: Path) -> None:
    async with cluster(database_url, tmp_path) as running, transaction_pooler(database_url) as pooled:
        made = running.settings
        for listen_url, expected in ((pooled, {"listener_echo"}), (database_url, set())):
            changed = {"url": pooled, "listen_url": listen_url, "listen_echo_timeout": 1}
            database = type(made.database).model_validate(made.database.model_dump() | changed)
            findings = await Examination(made.model_copy(update={"database": database}), None, None).run()
            assert red(findings) == expected, table(findings)


async def test_a_skewed_clock_is_named(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nodes start with a clock that is a minute ahead; the doctor's own is right."""
    real = clock.time.time
    with monkeypatch.context() as planted:
        planted.setattr(clock.time, "time", lambda: real() + 60)
        async with cluster(database_url, tmp_path, server={"trusted_proxies": "127.0.0.1"}) as running:
            planted.setattr(clock.time, "time", real)
            made = running.settings.model_copy(
                update={"wire": running.settings.wire.model_copy(update={"ping_interval": 0.5})}
            )
            nodes = [(str(each.node.id), each.node.public.host, each.node.public.port) for each in running.nodes]
            with nginx.edge(nodes) as address:
                findings = await Examination(made, Edge(address, ELSEWHERE), None).run()
            assert red(findings) == {"clock"}, table(findings)
            named = {str(each.node.id) for each in running.nodes if str(each.node.id) in seen(findings, "clock").seen}
            assert named == {str(each.node.id) for each in running.nodes}
            assert "this machine" not in seen(findings, "clock").seen


async def test_a_probe_counts_once_on_each_node(database_url: str, tmp_path: Path) -> None:
    async with cluster(database_url, tmp_path) as running:
        tokens = KeyStoreTokens(tmp_path / "keys", clock.ClusterClock(), limits.tokens(running.settings))
        token, _ = tokens.mint(ProbeToken(0))
        for each in running.nodes:
            node = Edge(each.url)
            seen = await asyncio.to_thread(node.seen, each.node.id, token)
            assert seen.node_id == str(each.node.id)
            with pytest.raises(EdgeError, match="426"):
                await asyncio.to_thread(node.seen, each.node.id, token)


async def test_a_database_that_is_away_hides_nothing_else(database_url: str, tmp_path: Path) -> None:
    async with cluster(database_url, tmp_path) as running:
        async with running.outage():
            findings = await Examination(running.settings, None, None).run()
        assert red(findings) == {"database"}, table(findings)
        unseen = {each.check for each in findings if each.verdict is Verdict.UNSEEN}
        assert unseen == {"migrations", "node_keys", "listener_echo", "clock"}
        assert seen(findings, "key_store").verdict is Verdict.OK


async def test_a_file_that_is_no_configuration_is_told(database_url: str, tmp_path: Path) -> None:
    (tmp_path / "nginx.conf").write_text("http {")
    async with cluster(database_url, tmp_path) as running:
        findings = await Examination(running.settings, None, tmp_path / "nginx.conf").run()
        assert red(findings) == {"conf.file"}, table(findings)


async def test_a_machine_with_other_keys_is_told_so_and_blames_no_edge(database_url: str, tmp_path: Path) -> None:
    async with examined(database_url, tmp_path, keys=tmp_path / "others") as (findings, _):
        assert red(findings) == {"node_keys", "probe"}, table(findings)
        assert {each.check for each in findings if each.verdict is Verdict.UNSEEN} == set(SIGNED)


async def test_an_edge_that_drops_the_authorization_is_told(database_url: str, tmp_path: Path) -> None:
    def dropped(text: str) -> str:
        return text.replace(STREAM_END, '            proxy_set_header Authorization "";\n' + STREAM_END)

    async with examined(database_url, tmp_path, conf=dropped) as (findings, _):
        assert red(findings) == {"probe"}, table(findings)


async def test_the_command_prints_each_line_and_exits_with_its_verdict(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cluster(database_url, tmp_path):
        monkeypatch.setenv("BOTHY_DATABASE__URL", database_url)
        monkeypatch.setenv("BOTHY_SECRETS__SIGNING_KEY_DIR", str(tmp_path / "keys"))
        answer = await asyncio.to_thread(CliRunner().invoke, bothy_server, ["doctor"])
        assert answer.exit_code == 0, answer.output
        assert [line.split()[1] for line in answer.output.splitlines()] == [
            "database",
            "migrations",
            "key_store",
            "node_keys",
            "listener_echo",
            "clock",
        ]
        away = await asyncio.to_thread(
            CliRunner().invoke, bothy_server, ["doctor", "--json", "--edge", "http://127.0.0.1:1"]
        )
        assert away.exit_code == 1
        verdicts = {each["check"]: each["verdict"] for each in json.loads(away.output)["checks"]}
        assert [check for check, verdict in verdicts.items() if verdict == "failed"] == ["edge"]
        assert {verdicts[check] for check in AT_THE_EDGE} == {"unseen"}
        assert CliRunner().invoke(bothy_server, ["doctor", "--edge", "relay"]).exit_code == 2
