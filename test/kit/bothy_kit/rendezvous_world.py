"""The rendezvous in a world that breaks: three nodes, one database, one host, several devices.

One seed is one session of some minutes of simulated time: late, doubled and lost signals, slow reads, cut and half-open
connections, crashes, drains, a database that goes away, an edge that changes its mind, second devices. ``World.watch`` and
``World.judge`` hold what must be true at every step and at the end. A ``Scenario`` can switch single rules off, to prove
that this is noticed.

By hand, with as many seeds as wanted: ``python -m bothy_kit.rendezvous_world 50000``.
"""

from __future__ import annotations

import heapq
import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bothy_server.terminal.domain.rendezvous import (
    Accept,
    Arrived,
    Check,
    Checked,
    Checking,
    Close,
    Count,
    DatabaseBack,
    DatabaseLost,
    Drain,
    Effect,
    EndRow,
    Event,
    Expected,
    Gone,
    Join,
    Kind,
    Limits,
    Outcome,
    Paired,
    PairedElsewhere,
    Part,
    Readied,
    ReadRow,
    Redial,
    Row,
    RowChanged,
    RowRead,
    State,
    TellPaired,
    Tick,
    WriteDetached,
    WriteFailed,
    deadline,
    is_idle,
    is_paired,
    step,
)
from bothy_server.terminal.domain.session import SessionState
from bothy_wire.close_codes import CloseCode, retry_of

LIMITS = Limits(open_timeout=20, start_timeout=30, redial_after=0.5, stall_timeout=120)
NODES = 3
PING_TIMEOUT = 40.0
HANDOVER = 0.25
"""Seconds for which an older pair may outlast a newer one: a host leaves its older connection once the newer is accepted."""
STORM, CALM = 90.0, 150.0
"""Seconds with faults, and seconds after them in which everything has to heal."""

Tag = tuple[str, int]
"""A pairing as the world tells it from all others: the rendezvous and its number there."""


class PromiseError(AssertionError):
    """Something happened that the rules promise never happens."""


@dataclass(frozen=True)
class Scenario:
    """What the world does, and which rules are switched off."""

    faults: bool = True
    split: bool = False
    fence: bool = True
    newest_attach: bool = True
    keep_host: bool = True
    leave_older: bool = True


class Database:
    """The session's row; every method is one statement."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.up = True
        self.row = Row(SessionState.OPENING, attach_seq=1, local_confirm=world.random.random() < 0.2)
        self.device = 1
        self.ends = 0
        self.granted: list[int] = []

    def attach(self, device: int) -> int:
        self.device = device
        self._write(attach_seq=self.row.attach_seq + 1)
        return self.row.attach_seq

    def check(self, seq: int) -> Outcome:
        if self.row.state is SessionState.CLOSED:
            return "closed"
        if seq < self.row.attach_seq and self.world.scenario.newest_attach:
            return "superseded"
        if self.granted and seq < self.granted[-1]:
            raise PromiseError("an older attach was paired over a newer one")
        self.granted.append(seq)
        detached = self.row.state is SessionState.DETACHED
        self._write(
            paired=True,
            paired_seq=self.row.paired_seq + 1,
            state=SessionState.ACTIVE if detached else self.row.state,
        )
        return "granted"

    def start(self) -> None:
        if self.row.state is SessionState.OPENING:
            self._write(state=SessionState.ACTIVE)
            self.world.tail()

    def detach(self, paired_seq: int) -> None:
        fenced = paired_seq != self.row.paired_seq and self.world.scenario.fence
        if self.row.state is not SessionState.ACTIVE or fenced:
            return
        self._write(state=SessionState.DETACHED)
        if any(node.carries(self.row.paired_seq) for node in self.world.nodes):
            raise PromiseError("the row was detached while its pair lived")
        self.world.tail()

    def end(self, detail: str) -> None:
        closed = self.row.state is SessionState.CLOSED
        missed = detail == "open_timeout" and not self.row.never_met
        started = detail == "start_timeout" and self.row.state is not SessionState.OPENING
        if closed or missed or started:
            return
        self.ends += 1
        if detail == "revoked":
            self._write(state=SessionState.CLOSED, close_reason="revoked")
        else:
            self._write(state=SessionState.CLOSED, close_reason="open_failed", close_detail=detail)
        self.world.tail()

    def _write(self, **changes: Any) -> None:
        self.row = replace(self.row, **changes)


class Socket:
    """A connection between a client and a node: in order both ways, each message late by chance."""

    def __init__(self, world: World, client: Client, node: Node, seq: int) -> None:
        self.world, self.client, self.node, self.seq = world, client, node, seq
        self.conn = 0
        self.up = True
        self.accepted = False
        self.pairing: Tag | None = None
        self._down_at = self._up_at = 0.0
        self.say(lambda: node.identify(self), lateness=(0.002, 0.02, 0.1))

    def tell(self, message: Callable[[], None]) -> None:
        """Node to client."""
        self._down_at = max(self._down_at, self.world.now + self.world.pick(0.001, 0.005, 0.04))
        self.world.at(self._down_at, lambda: message() if self.up else None)

    def say(self, message: Callable[[], None], lateness: tuple[float, ...] = (0.001, 0.005, 0.04)) -> None:
        """Client to node."""
        self._up_at = max(self._up_at, self.world.now + self.world.pick(*lateness))
        self.world.at(self._up_at, lambda: message() if self.up else None)

    def hang_up(self) -> None:
        """The client leaves in order."""
        self.say(lambda: self.node.lost(self))

    def cut(self, *, half_open: bool) -> None:
        """Nothing passes any more. The node learns it at once or by its ping."""
        if self.up:
            self.up = False
            self.world.later(PING_TIMEOUT if half_open else 0.003, lambda: self.node.lost(self))


class Node:
    """A shell around the rule, as thin as can be."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.sockets: dict[int, Socket] = {}
        self.life = 0
        self.draining = False
        self.fresh()

    def fresh(self) -> None:
        """Forget the rendezvous; a later one of the same session is another one."""
        self.world.names += 1
        self.state = State(draining=self.draining)
        self.tag = f"{self.name}.{self.world.names}"

    def feed(self, event: Event) -> None:
        before = self.state
        self.state, effects = step(before, event, self.world.now, LIMITS)
        self.world.watch(self, before, event, effects)
        for effect in effects:
            self.perform(effect)
        if is_idle(self.state):
            self.fresh()
        due = deadline(self.state, LIMITS)
        if due is not None:
            self.world.at(max(due, self.world.now), self.alive(self.tick))

    def hear(self, delay: float, event: Event) -> None:
        """A signal to this process: it reaches nobody when the process is gone by then."""
        self.world.later(delay, self.alive(partial(self.feed, event)))

    def follow(self, row: Row) -> None:
        """The tail: a session that nothing is registered of is no business of this node."""
        if self.state.row is not None:
            self.feed(RowChanged(row))

    def tick(self) -> None:
        due = deadline(self.state, LIMITS)
        if due is not None and due <= self.world.now:
            self.feed(Tick())

    def identify(self, socket: Socket) -> None:
        if self.draining:
            socket.tell(lambda: socket.client.closed(socket, CloseCode.ABNORMAL))
            return
        self.world.conns += 1
        socket.conn = self.world.conns
        self.sockets[socket.conn] = socket
        self.feed(Arrived(socket.conn, socket.client.kind, socket.seq))

    def lost(self, socket: Socket) -> None:
        if self.sockets.pop(socket.conn, None) is not None:
            self.feed(Gone(socket.conn))

    def forward(self, socket: Socket, tag: Tag) -> None:
        """A byte of a pairing came from a side."""
        side = next((side for side in self.state.accepted if side.conn == socket.conn), None)
        if side is None or not side.ready:
            return
        if not isinstance(self.state.phase, Paired):
            raise PromiseError("an honest side gets 4105 for its bytes")
        if tag != (self.tag, self.state.phase.pairing):
            raise PromiseError("a byte of one pairing passed in another")
        other = next(side for side in self.state.accepted if side.conn != socket.conn)
        to = self.sockets[other.conn]
        to.tell(lambda: to.client.got(to, tag))
        self.world.seen["bytes"] += 1
        self.world.run_program()

    def carries(self, paired_seq: int) -> bool:
        """Whether the pair of this value lives here; one with a half-open side is dead, the node just does not know."""
        recorded = isinstance(self.state.phase, Paired) and self.state.phase.record == "made"
        return recorded and all(
            side.paired_seq == paired_seq and self.sockets[side.conn].up for side in self.state.accepted
        )

    def relays(self) -> bool:
        """Whether bytes can pass between the two sides of a pair here."""
        return isinstance(self.state.phase, Paired) and all(self.sockets[side.conn].up for side in self.state.accepted)

    def crash(self) -> None:
        self.life += 1
        self.draining = False
        self.fresh()
        for socket in self.sockets.values():
            if socket.up:
                socket.up = False
                self.world.later(0.003, partial(socket.client.closed, socket, CloseCode.ABNORMAL))
        self.sockets.clear()

    def drain(self) -> None:
        self.draining = True
        self.feed(Drain())
        self.world.later(self.world.pick(0.5, 3, 30), self.alive(self.leave))

    def leave(self) -> None:
        """Both sides of a pair in one batch; then the process is gone and a new one comes."""
        for socket in list(self.sockets.values()):
            self.perform(Close(socket.conn, CloseCode.RESTART, ""))
        self.world.later(1, self.alive(self.crash))

    def alive(self, call: Callable[[], None]) -> Callable[[], None]:
        """What happens in this life of the node, or not at all."""
        life = self.life
        return lambda: call() if self.life == life else None

    def _answers(self) -> Callable[[Event], None]:
        """Where an answer goes: to this life of the node, or nowhere."""
        life = self.life
        return lambda event: self.feed(event) if self.life == life else None

    def perform(self, effect: Effect) -> None:
        world = self.world
        match effect:
            case ReadRow(conn):
                world.later(world.pick(0, 0.002, 0.05), self.alive(lambda: self._read(conn)))
            case Accept(conn):
                socket = self.sockets[conn]
                socket.tell(partial(socket.client.accepted, socket))
            case Close(conn, code):
                world.seen[f"close {code}"] += 1
                if conn in self.sockets:
                    socket = self.sockets[conn]
                    socket.tell(partial(socket.client.closed, socket, code))
            case Check():
                answered = self._answers()
                world.later(world.pick(0, 0.002, 0.06, world.slow(1.5)), lambda: self._check(effect, answered))
            case Join(pairing, device, host):
                world.seen["pairings"] += 1
                for conn in (device, host):
                    socket = self.sockets[conn]
                    socket.tell(partial(socket.client.paired, socket, (self.tag, pairing)))
            case Part(_, stays, _):
                socket = self.sockets[stays]
                socket.tell(partial(socket.client.unpaired, socket))
            case WriteDetached(paired_seq):
                failed = self._answers()
                world.later(world.pick(0.001, 0.03, world.slow(0.3)), lambda: self._detach(paired_seq, failed))
            case EndRow(detail):
                world.later(world.pick(0, 0.005), lambda: world.database.end(detail) if world.database.up else None)
            case Redial():
                world.seen["redials"] += 1
                world.later(0.05, world.host.open)
            case TellPaired():
                for node in world.nodes:
                    if node is not self:
                        node.hear(world.pick(0.003, 0.2), PairedElsewhere())
            case Count(side):
                world.seen[f"unpaired {side}"] += 1

    def _read(self, conn: int) -> None:
        socket = self.sockets.get(conn)
        if self.world.database.up:
            answer = RowRead(conn, self.world.database.row)
        elif socket is not None and socket.client.kind == "host" and self._knows_better():
            answer = RowRead(conn, self.state.row)
        else:
            answer = RowRead(conn, None, failed=True)
        self.world.later(self.world.pick(0, 0.001, 0.03, self.world.slow(0.4)), self.alive(lambda: self.feed(answer)))

    def _knows_better(self) -> bool:
        """N1a: a device that was let in with the database present still waits here."""
        running = self.state.row is not None and self.state.row.state is not SessionState.OPENING
        return running and self.state.device is not None

    def _check(self, check: Check, answered: Callable[[Event], None]) -> None:
        """The statement runs even when the node that sent it has died meanwhile."""
        database = self.world.database
        if not database.up:
            allowed = self._knows_better() and self.world.random.random() < 0.8
            self.world.seen["stale pairs"] += allowed
            answer = Checked(check.pairing, "stale" if allowed else "unavailable", token="token")
        else:
            outcome = database.check(check.seq)
            answer = Checked(check.pairing, outcome, database.row, database.row.paired_seq, "token")
        self.world.later(self.world.pick(0, 0.001, 0.03, self.world.slow(0.3)), lambda: answered(answer))

    def _detach(self, paired_seq: int, failed: Callable[[Event], None]) -> None:
        if self.world.database.up:
            self.world.database.detach(paired_seq)
        else:
            failed(WriteFailed(paired_seq))


class Client:
    """What device and host have in common: they send only while they are paired."""

    kind: Kind

    def __init__(self, world: World) -> None:
        self.world = world
        self.socket: Socket | None = None
        self.done = False

    def dial_with(self, seq: int) -> None:
        self.socket = Socket(self.world, self, self.world.route(), seq)

    def accepted(self, socket: Socket) -> None:
        socket.accepted = True

    def paired(self, socket: Socket, tag: Tag) -> None:
        socket.pairing = tag
        self._talk(socket, tag, 6)

    def unpaired(self, socket: Socket) -> None:
        socket.pairing = None
        self.world.later(
            self.world.pick(0, 0.03, 0.3), lambda: socket.say(lambda: socket.node.feed(Readied(socket.conn)))
        )

    def got(self, socket: Socket, tag: Tag) -> None:
        if socket.pairing != tag:
            raise PromiseError("a byte of one pairing arrived in another")

    def closed(self, socket: Socket, code: CloseCode) -> None:
        """A close frame came, or the connection broke."""
        if socket.up:
            socket.cut(half_open=False)
        if socket is self.socket and not self.done:
            self.back(code)

    def back(self, code: CloseCode) -> None:
        raise NotImplementedError

    def _talk(self, socket: Socket, tag: Tag, times: int) -> None:
        if socket.up and socket.pairing == tag and times:
            socket.say(lambda: socket.node.forward(socket, tag))
            self.world.later(self.world.pick(0.001, 0.01, 0.1), lambda: self._talk(socket, tag, times - 1))


class Device(Client):
    """A person at one device."""

    kind: Kind = "device"

    def __init__(self, world: World, number: int) -> None:
        super().__init__(world)
        self.number = number
        self.seq = 1

    def attach(self) -> None:
        world = self.world
        if self.done:
            return
        if self.socket is not None:
            self.socket.cut(half_open=world.random.random() < 0.3)
        if not world.database.up:
            world.later(1.5, self.attach)
        elif world.database.row.state is SessionState.CLOSED:
            self.done = True
        else:
            self.seq = world.database.attach(self.number)
            world.signal()
            world.later(world.pick(0.002, 0.05, 0.5), self.dial)

    def dial(self) -> None:
        if self.done:
            return
        if self.socket is not None:
            self.socket.cut(half_open=True)
        self.dial_with(self.seq)

    def back(self, code: CloseCode) -> None:
        world = self.world
        if code is CloseCode.REPLACED and world.random.random() < 0.2 and not world.calm:
            world.later(world.random.uniform(1, 9), self.attach)  # "press Enter to take it back"
            return
        match retry_of(code, "stream"):
            case "never":
                self.done = True
            case "attach":
                world.later(world.random.uniform(0.2, 1), self.attach)
            case _:
                world.later(world.random.uniform(0.2, 3), self.dial)


class Host(Client):
    """The host service, for this one session."""

    kind: Kind = "host"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.runs = False
        self.older: list[Socket] = []

    def open(self) -> None:
        """``host.session.open`` came."""
        here = self.socket is not None and self.socket.up
        if self.done or (here and not (self.runs and self.socket is not None and self.socket.accepted)):
            return
        if self.socket is not None and here:
            self.older.append(self.socket)
        self.dial_with(0)

    def dial(self) -> None:
        if not self.done and not (self.socket is not None and self.socket.up):
            self.dial_with(0)

    def accepted(self, socket: Socket) -> None:
        super().accepted(socket)
        if socket is self.socket and self.world.scenario.leave_older:
            for older in self.older:
                older.hang_up()
            self.older.clear()

    def back(self, code: CloseCode) -> None:
        match retry_of(code, "data"):
            case "never":
                self.done = True
            case "wait":
                pass
            case _:
                self.world.later(self.world.random.uniform(0.2, 1), self.dial)


class World:
    """Time, chance, the edge, the signals; and the judge."""

    def __init__(self, seed: int, scenario: Scenario) -> None:
        self.random = random.Random(seed)
        self.scenario = scenario
        self.now = 0.0
        self.calm = not scenario.faults
        self.seen: Counter[str] = Counter()
        self.names = self.conns = 0
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self.database = Database(self)
        self.nodes = [Node(self, name) for name in "ABC"[:NODES]]
        self.hashed = self.random.choice(self.nodes)
        self.host = Host(self)
        self.devices = {1: Device(self, 1)}
        self._program = False
        self._doubled_at: float | None = None

    # ---- time and chance

    def at(self, instant: float, call: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._queue, (instant, self._count, call))

    def later(self, delay: float, call: Callable[[], None]) -> None:
        self.at(self.now + delay, call)

    def pick(self, *choices: float) -> float:
        return self.random.choice(choices)

    def slow(self, delay: float) -> float:
        """A delay of the storm."""
        return 0.02 if self.calm and self.scenario.faults else delay

    # ---- what connects the parts

    def route(self) -> Node:
        """The edge: one node by the hash of the session, or by a wrong rule any node."""
        if self.scenario.split and not self.calm:
            return self.random.choice(self.nodes)
        if self.hashed.draining:
            self.hashed = self.random.choice([node for node in self.nodes if not node.draining])
        return self.hashed

    def signal(self) -> None:
        """``session_open``: late, doubled or lost; the node with the control connection tells the host."""
        for node in self.nodes:
            lost = self.random.random() < 0.1 and not self.calm
            for _ in range(0 if lost else 1 + (self.random.random() < 0.1)):
                delay = self.pick(0.001, 0.02, 0.2, self.slow(2.5))
                self.later(delay, node.alive(partial(self._expected, node)))
        if self.database.row.state is SessionState.OPENING:
            self.later(self.pick(0.005, 0.04, 0.4), self.host.open)

    def _expected(self, node: Node) -> None:
        row = self.database.row
        if not self.database.up or row.state is SessionState.CLOSED:
            return
        host = node.state.host
        if not self.scenario.keep_host and host is not None and not host.paired_once and row.never_met:
            node.perform(Close(host.conn, CloseCode.NORMAL, ""))
            node.lost(node.sockets[host.conn])
        node.feed(Expected(row))

    def tail(self) -> None:
        row = self.database.row
        for node in self.nodes:
            delay = self.pick(0.002, 0.03, self.slow(0.9))
            self.later(delay, node.alive(partial(node.follow, row)))

    def run_program(self) -> None:
        """The host reports ``started`` soon after the first bytes."""
        if not self._program:
            self._program = self.host.runs = True
            self.later(0.3, self._started)

    def _started(self) -> None:
        if self.database.up:
            self.database.start()
        else:
            self.later(1, self._started)

    def lose_database(self) -> None:
        if self.database.up:
            self.database.up = False
            self._tell_nodes(DatabaseLost())
            self.later(self.pick(0.5, 8, 60), self.find_database)

    def find_database(self) -> None:
        if not self.database.up:
            self.database.up = True
            self._tell_nodes(DatabaseBack())
            self.later(0.1, self.tail)  # a gap: the states are read again

    def _tell_nodes(self, event: Event) -> None:
        for node in self.nodes:
            node.hear(self.pick(0.01, 0.3), event)

    # ---- faults

    def fault(self) -> None:
        if self.calm:
            return
        device = self.random.choice(list(self.devices.values()))
        kinds = ("device", "device half", "host", "host half", "crash", "drain", "hash", "database", "second", "race")
        kind = self.random.choice(kinds)
        self.seen[kind] += 1
        match kind.split():
            case ["device", *half] if device.socket is not None and device.socket.up and not device.done:
                device.socket.cut(half_open=bool(half))
                self.later(self.random.uniform(0.005, 1.5), self.random.choice([device.dial, device.attach]))
            case ["host", *half] if self.host.socket is not None and self.host.socket.up:
                self.host.socket.cut(half_open=bool(half))
                self.later(self.random.uniform(0.005, 1.5), self.host.dial)
            case ["crash"]:
                self.random.choice(self.nodes).crash()
            case ["drain"] if not any(node.draining for node in self.nodes):
                self.random.choice(self.nodes).drain()
            case ["hash"]:
                self.hashed = self.random.choice(self.nodes)
            case ["database"]:
                self.lose_database()
            case ["second" | "race" as how]:
                for _ in range(2 if how == "race" else 1):
                    number = len(self.devices) + 1
                    self.devices[number] = Device(self, number)
                    self.later(self.random.uniform(0.001, 0.03), self.devices[number].attach)
            case _:
                pass
        self.later(self.random.uniform(0.02, 6), self.fault)

    def settle(self) -> None:
        """The storm is over; the person at the newest device tries once more."""
        self.calm = True
        self.find_database()
        self.later(1, self.devices[self.database.device].attach)

    # ---- the judge

    def watch(self, node: Node, before: State, event: Event, effects: list[Effect]) -> None:
        """What must be true at every step."""
        after = node.state
        for effect in effects:
            match effect:
                case Close(code=CloseCode.PROTOCOL_VIOLATION):
                    raise PromiseError("an honest side gets 4105")
                case Join(pairing, device, host):
                    here = [side.conn for side in after.accepted if side.ready]
                    paired = isinstance(after.phase, Paired) and after.phase.pairing == pairing
                    if here != [device, host] or not paired:
                        raise PromiseError("a pair without two ready sides")
                case EndRow("open_timeout" | "start_timeout") | Redial() if before.draining:
                    raise PromiseError("a draining node acts for the session")
                case _:
                    pass
        self._count_relays()
        if before.device is not None and after.device is not None and after.device.seq < before.device.seq:
            raise PromiseError("the device side went back to an older attach")
        due = deadline(after, LIMITS)
        if due is not None and due <= self.now:
            if isinstance(event, Tick):
                raise PromiseError("a timer fired and is still due")
            return  # the next event is the tick
        if isinstance(after.phase, Paired) or after.phase == Checking(after.pairings):
            return
        for side in after.accepted:
            waited = self.now - side.lone_since >= LIMITS.open_timeout
            bound = side.kind == "device" or (after.row is not None and after.row.never_met)
            if waited and bound and not side.paired_once:
                raise PromiseError(f"a lone {side.kind} side outlives its deadline")
            if side.asked_at is not None and self.now - side.asked_at >= LIMITS.stall_timeout:
                raise PromiseError("an unready side outlives its deadline")

    def _count_relays(self) -> None:
        if sum(node.relays() for node in self.nodes) < 2:
            self._doubled_at = None
        elif self._doubled_at is None:
            self._doubled_at = self.now
        elif self.now - self._doubled_at > HANDOVER:
            raise PromiseError("a session with two relays")

    def judge(self) -> str:
        """What must be true at the end; answers with how it ended."""
        if self.database.ends > 1:
            raise PromiseError("two ends")
        if not self.scenario.faults and any(name.startswith("close") for name in self.seen):
            raise PromiseError("a side was closed although nothing went wrong")
        if self.database.row.state is SessionState.CLOSED:
            if not all(is_idle(node.state) for node in self.nodes):
                raise PromiseError("a closed session is not forgotten")
            return f"closed {self.database.row.end}"
        pairs = [node for node in self.nodes if is_paired(node.state)]
        if not pairs and self.devices[self.database.device].done:
            return "left by its person"
        if len(pairs) != 1:
            raise PromiseError(f"{len(pairs)} pairs at the end")
        if self.database.row.state is not SessionState.ACTIVE or not pairs[0].carries(self.database.row.paired_seq):
            raise PromiseError("the row does not carry the pair that lives")
        if not all(is_idle(node.state) for node in self.nodes if node is not pairs[0]):
            raise PromiseError("a node without the pair still waits for something")
        return "paired"

    def run(self) -> str:
        self.signal()
        self.later(self.pick(0.001, 0.06, 0.3), self.devices[1].dial)
        if self.scenario.faults:
            self.later(self.random.uniform(0.02, 3), self.fault)
            self.at(STORM, self.settle)
        end = STORM + CALM if self.scenario.faults else LIMITS.open_timeout * 2
        while self._queue and self._queue[0][0] <= end:
            self.now, _, call = heapq.heappop(self._queue)
            call()
        return self.judge()


def play(seeds: range, scenario: Scenario) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """How the sessions ended, what was broken (with the first seed), and what was seen on the way."""
    ends: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    first: dict[str, int] = {}
    for seed in seeds:
        world = World(seed, scenario)
        try:
            ends[world.run()] += 1
        except PromiseError as why:
            broken[f"{why} (first in seed {first.setdefault(str(why), seed)})"] += 1
        seen += world.seen
    return ends, broken, seen


def main() -> None:
    """Many seeds by hand: number of seeds, then the names of what to change in the scenario."""
    changes = {name: name == "split" for name in sys.argv[2:]}
    for counted in play(range(int(sys.argv[1])), Scenario(**changes)):
        sys.stdout.write(f"{dict(counted)}\n")


if __name__ == "__main__":
    main()
