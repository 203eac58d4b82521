"""Names every real adapter once: what a node, a worker and the command line are made of."""

from bothy_server.wiring.command_line import Admin, admin
from bothy_server.wiring.node import Node, start_node
from bothy_server.wiring.process import STORES, Foundation, foundation
from bothy_server.wiring.shared_use_cases import tokens_of_this_machine
from bothy_server.wiring.signals import HOST_SIGNALS, SIGNALS, TERMINAL_SIGNALS, outbound
from bothy_server.wiring.worker import start_worker

__all__ = [
    "HOST_SIGNALS",
    "SIGNALS",
    "STORES",
    "TERMINAL_SIGNALS",
    "Admin",
    "Foundation",
    "Node",
    "admin",
    "foundation",
    "outbound",
    "start_node",
    "start_worker",
    "tokens_of_this_machine",
]
