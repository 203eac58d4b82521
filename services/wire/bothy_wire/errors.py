"""Whose fault it is: a broken peer or a broken caller.

::

    WireError
      RemoteError          the peer broke the protocol; close with .code
        FrameError         a text frame that is not one of ours
        ChannelError       a handshake or a record that does not open or is not allowed here
      LocalError           our own code called in the wrong state: a bug, never a peer's doing
"""

from __future__ import annotations


class WireError(Exception):
    """Root of the errors of this package."""


class RemoteError(WireError):
    """The peer broke the protocol. ``code`` is the close code that answers it."""

    code = 4105


class FrameError(RemoteError):
    """A text frame that is malformed, unknown or not allowed in this direction."""


class ChannelError(RemoteError):
    """A handshake message or a record that does not open, or that is not allowed in this state."""

    code = 4107


class LocalError(WireError):
    """A call that the state does not allow. It shows a defect of the caller."""
