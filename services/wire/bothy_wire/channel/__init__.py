"""The end-to-end channel between device and host: Noise IK, records, flow control, resume (``docs/spec/protocol.md``).

Sans I/O. A shell owns one end per session, feeds it binary frames and, whenever its socket takes more, sends what
:meth:`take_outgoing` gives, in order, one binary frame each. The events that an end returns are imported from its module.
"""

from bothy_wire.channel.device_end import DeviceEnd
from bothy_wire.channel.flow import Limits
from bothy_wire.channel.handshake import Accepted, Message1, RefusalCode, Refused, Resume
from bothy_wire.channel.host_end import HostEnd

__all__ = ["Accepted", "DeviceEnd", "HostEnd", "Limits", "Message1", "RefusalCode", "Refused", "Resume"]
