"""The Compose files as an operator renders them: what two nodes share, what is published, what is hardened."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bothy_kit.engine import compose_binary
from bothy_server.platform.setting_values import names_password
from bothy_server.platform.settings import Server

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "infra" / "compose"
SAME_FIELDS = (
    "image",
    "command",
    "volumes",
    "read_only",
    "cap_drop",
    "security_opt",
    "tmpfs",
    "healthcheck",
    "depends_on",
    "networks",
    "secrets",
    "stop_grace_period",
)
GENERATIONS = 50
"""Reloads that open terminals may outlive."""
OVERLAY = ("compose.yaml", "compose.multi-node.yaml")


def rendered(files: tuple[str, ...], *profiles: str) -> dict[str, Any]:
    """What Compose makes of the files; that needs no engine."""
    words = [word for each in files for word in ("-f", FOLDER / each)]
    words += [word for each in profiles for word in ("--profile", each)]
    where = ["--project-directory", FOLDER, "--env-file", FOLDER / ".env.example"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("BOTHY_", "COMPOSE_"))}
    run = subprocess.run(
        [compose_binary(), *where, *words, "config", "--format", "json"],
        env=clean,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def example() -> dict[str, str]:
    lines = (FOLDER / ".env.example").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def defaults(name: str, *files: str) -> set[str]:
    """Every default of a variable in the files."""
    text = "".join((FOLDER / each).read_text() for each in files)
    return set(re.findall(rf"\$\{{{name}:-([^}}]*)\}}", text))


def seconds(written: str) -> int:
    """A duration as Compose renders it, such as ``11m0s``."""
    return sum(
        int(amount) * {"h": 3600, "m": 60, "s": 1}[unit] for amount, unit in re.findall(r"(\d+)([hms])", written)
    )


def hardened(service: dict[str, Any]) -> None:
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert service["security_opt"] == ["no-new-privileges"]
    assert service["tmpfs"]
    assert service["logging"] == {"driver": "local"}
    assert "privileged" not in service
    for limit in ("mem_limit", "pids_limit", "cpus"):
        assert service[limit]


def test_compose_multi_node_overlay() -> None:
    shown = rendered(OVERLAY, "direct")
    services = shown["services"]
    assert set(services) == {"postgres", "migrate", "api", "api-2", "worker", "edge"}

    api, second, worker, edge = (services[name] for name in ("api", "api-2", "worker", "edge"))
    for field in SAME_FIELDS:
        assert api[field] == second[field], field
        assert api[field], field
    assert {name: value for name, value in second.items() if name != "profiles"} == api
    assert [each["source"] for each in api["volumes"]] == ["signing-keys"]
    assert [each["source"] for each in worker["volumes"]] == ["signing-keys"]
    for each in (api, second, worker):
        assert each["environment"]["BOTHY_CLUSTER__MODE"] == "multi"
        assert "ports" not in each
    subnets = [each["subnet"] for each in shown["networks"]["default"]["ipam"]["config"]]
    for name in ("api", "api-2"):
        assert subnets == [services[name]["environment"]["BOTHY_SERVER__TRUSTED_PROXIES"]]
        assert {each: on["condition"] for each, on in services[name]["depends_on"].items()} == {
            "postgres": "service_healthy",
            "migrate": "service_completed_successfully",
        }

    version = example()["BOTHY_NGINX_VERSION"]
    assert defaults("BOTHY_NGINX_VERSION", *OVERLAY) == {version}
    assert edge["image"] == f"{example()['BOTHY_NGINX_IMAGE']}:{version}"
    assert [(each["host_ip"], each["published"], each["target"]) for each in edge["ports"]] == [
        ("127.0.0.1", example()["BOTHY_HTTP_PUBLISH_PORT"], 8080)
    ]
    assert defaults("BOTHY_HTTP_PUBLISH_PORT", *OVERLAY) == {"8090"}
    assert list(edge["networks"]) == ["default"]
    assert [(each["type"], each["read_only"]) for each in edge["volumes"]] == [("bind", True)]
    assert Path(edge["volumes"][0]["source"]) == FOLDER / "edge"
    assert {name: on["condition"] for name, on in edge["depends_on"].items()} == {
        "api": "service_healthy",
        "api-2": "service_healthy",
    }
    assert edge["user"].split(":")[0] not in {"0", "root"}

    for name in ("api", "api-2"):
        assert f"server {name}:8080 " in (FOLDER / "edge" / "upstreams.conf").read_text()
    for service in services.values():
        hardened(service)
        assert {each["host_ip"] for each in service.get("ports", ())} <= {"127.0.0.1"}
    assert shown["networks"]["internal"]["internal"] is True
    assert list(services["postgres"]["networks"]) == ["internal"]


@pytest.mark.parametrize("profiles", [(), ("tailscale",)])
def test_compose_overlay_without_its_profile_has_neither_edge_nor_second_node(profiles: tuple[str, ...]) -> None:
    services = rendered(OVERLAY, *profiles)["services"]
    assert not {"edge", "api-2"} & set(services)
    assert [name for name, service in services.items() if "ports" in service] == []


def test_compose_on_one_machine_publishes_on_loopback() -> None:
    services = rendered(("compose.yaml",))["services"]
    assert set(services) == {"postgres", "migrate", "api", "worker"}
    assert {name for name, service in services.items() if "ports" in service} == {"api"}
    assert [each["host_ip"] for each in services["api"]["ports"]] == ["127.0.0.1"]
    assert services["api"]["environment"]["BOTHY_CLUSTER__MODE"] == "single"
    for service in services.values():
        hardened(service)


def test_compose_example_names_the_defaults() -> None:
    text = "".join((FOLDER / each).read_text() for each in OVERLAY)
    for name, value in re.findall(r"\$\{(BOTHY_[A-Z_]+):-([^}]*)\}", text):
        assert example()[name] == value, name
    for name in re.findall(r"\$\{(BOTHY_[A-Z_]+):\?", text):
        assert example()[name], name


def test_compose_gives_the_password_as_a_file_and_nowhere_else() -> None:
    shown = rendered(OVERLAY, "direct")
    (secret,) = shown["secrets"].values()
    assert secret["file"] == str(FOLDER / "secrets" / "database-password")
    inside = "/run/secrets/database-password"
    for name, service in shown["services"].items():
        environment = {key: value for key, value in service.get("environment", {}).items() if "PASSWORD" in key}
        match name:
            case "edge":
                assert "secrets" not in service
                assert environment == {}
            case "postgres":
                assert environment == {"POSTGRES_PASSWORD_FILE": inside}
            case _:
                assert environment == {"BOTHY_DATABASE__PASSWORD_FILE": inside}
                assert not names_password(service["environment"]["BOTHY_DATABASE__URL"])
        if name != "edge":
            assert [each["source"] for each in service["secrets"]] == ["database-password"]
    assert not [each for each in example() if each.endswith("PASSWORD")]


def test_compose_has_more_patience_than_a_node_that_leaves() -> None:
    server = Server()
    services = rendered(OVERLAY, "direct")["services"]
    longest_s = server.drain_timeout + server.stop_linger
    for name in ("api", "api-2"):
        assert longest_s < seconds(services[name]["stop_grace_period"]) <= 2 * longest_s
    for name in ("worker", "postgres"):  # they drain nothing
        assert seconds(services[name]["stop_grace_period"]) == 60


def test_compose_stops_a_node_that_still_starts() -> None:
    """As process 1 it would not hear the signal, and the whole patience would pass."""
    services = rendered(OVERLAY, "direct")["services"]
    assert [name for name in ("migrate", "api", "api-2", "worker") if not services[name].get("init")] == []


def test_compose_edge_has_a_worker_for_each_cpu_and_room_for_reloads() -> None:
    edge = rendered(OVERLAY, "direct")["services"]["edge"]
    workers = re.search(r"^worker_processes (\d+);", (FOLDER / "edge" / "nginx.conf").read_text(), re.MULTILINE)
    assert workers is not None
    assert float(edge["cpus"]) == int(workers[1])
    assert edge["pids_limit"] >= 1 + int(workers[1]) * GENERATIONS
    assert edge["healthcheck"]["test"] == ["CMD", "test", "-s", "/tmp/edge/nginx.pid"]


def test_compose_files_name_no_registry() -> None:
    for path in (FOLDER / "Dockerfile", *(FOLDER / each for each in OVERLAY), FOLDER / ".env.example"):
        text = path.read_text()
        assert "# syntax=" not in text
        assert re.findall(r"[a-z0-9-]+\.(?:io|com|org|dev)/", text) == []


def test_compose_overlay_says_what_it_is() -> None:
    head = re.match(r"(?:#.*\n)+", (FOLDER / "compose.multi-node.yaml").read_text())
    assert head is not None
    for word in ("Two api nodes", "TLS", "BOTHY_SERVER__TRUSTED_PROXIES", "BOTHY_SUBNET", "Profile:", "`direct`"):
        assert word in head[0]


def test_compose_version_of_nginx_is_on_the_configuration_page() -> None:
    page = (ROOT / "docs" / "operations" / "configuration.md").read_text()
    assert f"`BOTHY_NGINX_VERSION`, default {example()['BOTHY_NGINX_VERSION']}" in page
