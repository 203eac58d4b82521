"""What a stranger installs: the wheel alone, in an empty environment."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SERVER_ONLY = {
    "sqlalchemy",
    "alembic",
    "psycopg",
    "starlette",
    "uvicorn",
    "structlog",
    "pydantic",
    "uvloop",
    "httptools",
}


def run(*words: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(each) for each in words], capture_output=True, text=True, check=False, timeout=300, **options
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    built = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment that holds the base install and nothing else."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder, with_pip=True)
    done = run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", wheel)
    assert done.returncode == 0, done.stderr
    return folder / "bin"


def test_the_wheel_holds_the_four_parts_and_no_tests(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    roots = {name.split("/")[0] for name in names if not name.split("/")[0].endswith(".dist-info")}
    assert roots == {"bothy_wire", "bothy_server", "bothy_host", "bothy_device"}
    assert not [name for name in names if "/tests/" in name or "kit" in name.split("/")[0]]
    assert "bothy_server/migrations/versions/0001_tables.py" in names


def test_the_wheel_carries_the_console(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    names = {name.removeprefix("bothy_server/console_dist") for name in archive.namelist()}
    named = re.findall(r'(?:href|src)="(/assets/[^"]+)"', archive.read("bothy_server/console_dist/index.html").decode())
    assert {Path(each).suffix for each in named} == {".js", ".css"}
    assert names >= {*named, "/assets/licences.txt"}


def test_host_and_device_run_with_the_base_install_alone(installed: Path, tmp_path: Path) -> None:
    assert run(installed / "python", "-m", "pip", "check").returncode == 0
    listed = run(installed / "python", "-m", "pip", "list", "--format", "freeze").stdout.lower()
    assert not {line.split("==")[0] for line in listed.splitlines()} & SERVER_ONLY

    environment = {"BOTHY_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}
    for program in ("bothy", "bothy-host"):
        assert re.search(r"\d+\.\d+\.\d+", run(installed / program, "--version", env=environment).stdout)
    hosts = run(installed / "bothy", "hosts", env=environment)
    assert (hosts.returncode, hosts.stdout) == (1, "")
    assert "bothy login" in hosts.stderr
    served = run(installed / "bothy-host", "--config", tmp_path / "none.toml", "run", env=environment)
    assert served.returncode == 1
    assert "none.toml" in served.stderr


def test_every_module_of_host_and_device_imports_with_the_base_install(installed: Path) -> None:
    everything = """
import importlib, pkgutil, bothy_wire, bothy_host, bothy_device
for package in (bothy_wire, bothy_host, bothy_device):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if module.name.split(".")[1:] not in (["emulator"], ["emulated"], ["bounded"], ["emulator_process"]):  # these are the extra `screen`
            importlib.import_module(module.name)
from bothy_host.emulator_link import installed
print(installed())
"""
    done = run(installed / "python", "-c", everything)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr


def test_the_server_without_its_extra_says_what_to_install(installed: Path) -> None:
    done = run(installed / "bothy-server", "--version")
    assert done.returncode == 1
    assert "bothy-relay[server]" in done.stderr
    assert "Traceback" not in done.stderr
