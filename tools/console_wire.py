"""What the console has to know of the wire, as JSON: ``python tools/console_wire.py`` writes it; ``--check`` fails when it is stale.

Constants of the protocol, close codes with the retry of each kind of client, and the steps of waiting: one table for both languages.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from api_page import write_or_check
from bothy_wire import limits
from bothy_wire.backoff import Backoff
from bothy_wire.close_codes import MEANINGS

PAGE = Path("services/console/src/channel/wire.json")


def document() -> str:
    """The file's content."""
    content = {
        "limits": {name: value for name, value in vars(limits).items() if name.isupper()},
        "close_codes": {int(code): asdict(meaning) for code, meaning in MEANINGS.items()},
        "backoff": asdict(Backoff()),
    }
    return json.dumps(content, indent=2) + "\n"


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, document))
