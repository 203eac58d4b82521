"""The commands of ``bothy-server``, a file for each group."""

from __future__ import annotations

from importlib.metadata import version

import click

from bothy_server.commands import audit, database, device, doctor, host, keys, node, person, serve, settings


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("bothy-relay"), prog_name="bothy-server")
def bothy_server() -> None:
    """Run and administer a bothy relay. Settings come from BOTHY_* variables or the file named by BOTHY_CONFIG."""


for command in (
    serve.serve,
    database.migrate,
    settings.show_settings,
    doctor.doctor,
    keys.keys,
    person.person,
    device.device,
    node.node,
    host.host,
    audit.audit,
):
    bothy_server.add_command(command)
