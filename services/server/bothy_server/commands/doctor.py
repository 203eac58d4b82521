"""``bothy-server doctor``."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from bothy_server.commands.calls import as_json, settings_in_force
from bothy_server.doctor import report
from bothy_server.doctor.edge_probe import Edge
from bothy_server.doctor.examination import Examination
from bothy_wire.signing import canonical_origin


def _origin(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    try:
        return None if value is None else canonical_origin(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command()
@click.option("--edge", metavar="URL", callback=_origin, help="The address that clients dial; its routing is proved.")
@click.option(
    "--nginx-conf",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The edge's configuration, for what no request can show.",
)
@as_json
def doctor(edge: str | None, nginx_conf: Path | None, as_json: bool) -> None:
    """Look for faults of this installation and say how to mend them. Exit status 1 when a check failed."""

    def tell(checks: str) -> None:
        if sys.stderr.isatty():
            click.echo(f"looking at {checks}", err=True)

    examination = Examination(settings_in_force(), None if edge is None else Edge(edge), nginx_conf, tell)
    findings = asyncio.run(examination.run())
    click.echo(report.as_json(findings) if as_json else report.table(findings))
    sys.exit(0 if report.passed(findings) else 1)
