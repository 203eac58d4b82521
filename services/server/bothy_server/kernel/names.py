"""Names that people give to people, devices and hosts."""

from __future__ import annotations

from bothy_server.kernel.problems import Problem
from bothy_wire.limits import NAME_BYTES


def check_name(name: str) -> None:
    """Refuse what a row cannot hold or a screen cannot show: raises 422 ``name_invalid``."""
    if not (name.isprintable() and 0 < len(name.encode()) <= NAME_BYTES):
        raise Problem(422, "name_invalid", f"A name has 1 to {NAME_BYTES} bytes of UTF-8 and no control characters.")
