"""What the service and the process of the terminal emulator say to each other, over one socket.

The service speaks in words of a header and a body; it is answered for each :attr:`Kind.REPAINT`, in order, by a length and a picture.
"""

from __future__ import annotations

import struct
from enum import IntEnum

HEADER = struct.Struct(">BII")
"""Kind, number of the screen, length of the body."""
SIZE = struct.Struct(">HH")
"""Body of a resize: columns, rows."""
LENGTH = struct.Struct(">I")
"""Body of a new screen: the most bytes of its pictures. Also in front of each picture."""


class Kind(IntEnum):
    """What the process is told."""

    NEW = 1
    FEED = 2
    RESIZE = 3
    REPAINT = 4
    CLOSE = 5
