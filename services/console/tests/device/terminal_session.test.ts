/** A session on a page, against a scripted relay and the host's end of Python. */

import assert from "node:assert/strict";
import { after, afterEach, beforeEach, mock, test } from "node:test";
import { hex } from "../channel/hex.ts";
import { PythonHost } from "../channel/python_host.ts";
import { Socket, World, openedBy } from "./relay.ts";

const PROMPT = Buffer.from("$ ").toString("hex");
const python = new PythonHost();
after(() => python.stop());

let wall = 1_000_000;
let steady = 1_000;
let world: World;

beforeEach(async () => {
  [wall, steady] = [1_000_000, 1_000];
  Object.assign(globalThis, { WebSocket: Socket });
  Object.defineProperty(globalThis, "navigator", { value: { onLine: true }, configurable: true });
  mock.timers.enable({ apis: ["setTimeout"] });
  mock.method(Date, "now", () => wall * 1000);
  mock.method(performance, "now", () => steady * 1000);
  world = await World.make(python);
});

afterEach(() => {
  world.session.leave();
  mock.timers.reset();
  mock.restoreAll();
});

/** Time goes by, and the page's timers run once, at its end. */
function pass(seconds: number, slept = false): void {
  wall += seconds;
  if (!slept) steady += seconds;
  mock.timers.tick(Math.max(1000, seconds * 1000));
}

/** A terminal that is up, with a prompt that it has shown. */
async function up(): Promise<Socket> {
  const socket = await world.accepted(0);
  await world.paired(socket);
  await world.host(socket, "print", { data: PROMPT, now: 0 });
  await world.carry(socket, (state) => state.in_flight === 0);
  assert.equal(world.shown, "$ ");
  return socket;
}

/** Everything typed has arrived. */
async function arrived(socket: Socket, typed: string): Promise<void> {
  await world.carry(socket, (state) => Buffer.from(state.arrived, "hex").toString() === typed);
}

test("what is typed while it opens is sent once, and what is printed is shown", async () => {
  world.session.type(Buffer.from("ls\r"));
  const socket = await world.accepted(0);
  assert.equal(socket.url, "wss://relay.example.com/api/v1/terminal/sessions/01890a5d-ac96-774b-bcce-b302099a8057/stream");
  assert.equal(JSON.parse(socket.texts[0]!).stream_token, "the first token");
  await world.paired(socket);
  await arrived(socket, "ls\r");
  await world.host(socket, "print", { data: PROMPT, now: 0 });
  await world.until(() => world.shown === "$ ");
  await world.until(() => world.status.kind === "up" && world.status.waiting === 0);
});

test("the host goes and comes: the relay is answered once, and the resume is exact", async () => {
  const socket = await up();
  socket.say({ type: "side.unpaired" });
  await world.until(() => socket.texts[1]);
  world.session.type(Buffer.from("typed meanwhile"));
  await world.paired(socket);
  await arrived(socket, "typed meanwhile");
  assert.deepEqual(socket.texts.slice(1), ['{"type":"side.ready"}']);
  assert.deepEqual((await world.host(socket, "state")).resumes, ["new", "exact"]);
});

test("a lost connection is dialled again with the same token", async () => {
  const socket = await up();
  socket.shut(1006);
  await world.until(() => world.status.kind === "connecting");
  world.session.tryNow();
  const another = await world.accepted(1);
  assert.equal(JSON.parse(another.texts[0]!).stream_token, "the first token");
  await world.paired(another);
  assert.deepEqual((await world.host(another, "state")).resumes, ["new", "exact"]);
});

test("a token of no use is asked for anew, and another key of the host ends it", async () => {
  const socket = await world.accepted(0);
  await world.paired(socket);
  world.answers["01890a5d-ac96-774b-bcce-b302099a8057"] = () => ({ state: "detached", close_reason: null, device_id: "me" });
  world.answers["me"] = () => ({ device_id: "me" });
  world.answers["attach"] = () => openedBy(new Uint8Array(32), "a stranger's token");
  socket.shut(4106);
  await world.until(() => world.status.kind === "connecting" && world.status.retryIn !== null);
  world.session.tryNow();
  await world.until(() => world.status.kind === "ended");
  assert.match(world.status.kind === "ended" ? world.status.text : "", /another key of the host/);
  assert.equal(Socket.made.length, 1);
});

test("an exit is acknowledged, told with its status, and the connection is left", async () => {
  const socket = await up();
  await world.host(socket, "exit", { status: 7, now: 0 });
  await world.carry(socket, (state) => state.exit_acknowledged);
  assert.deepEqual(world.status, { kind: "ended", exitStatus: 7, over: true, text: "the program ended with status 7" });
  assert.equal(socket.closed, 1000);
});

test("an exit right in front of the relay's close is still told", async () => {
  const socket = await up();
  await world.host(socket, "exit", { status: 3, now: 0 });
  socket.shut(4100, "process_exited");
  await world.until(() => world.status.kind === "ended");
  assert.equal(world.status.kind === "ended" && world.status.exitStatus, 3);
  assert.equal(world.shown, "$ ");
});

test("a record that does not open is answered with 4107 after a moment", async () => {
  const socket = await world.accepted(0);
  await world.paired(socket);
  socket.say(new Uint8Array(40));
  socket.say(new Uint8Array(40));
  while (world.status.kind === "up") {
    pass(0); // the timers run, the clock stands
    await new Promise(setImmediate);
  }
  assert.equal(socket.closed, null);
  pass(1.5);
  assert.equal(socket.closed, 4107);
});

test("another device took the session: a person takes it back", async () => {
  const socket = await world.accepted(0);
  await world.paired(socket);
  socket.shut(4103);
  await world.until(() => world.status.kind === "replaced");
  world.answers["01890a5d-ac96-774b-bcce-b302099a8057"] = () => ({ state: "active", close_reason: null, device_id: "other" });
  world.answers["me"] = () => ({ device_id: "me" });
  world.answers["attach"] = () => openedBy(world.hostKey, "taken back");
  world.session.tryNow();
  const another = await world.accepted(1);
  assert.equal(JSON.parse(another.texts[0]!).stream_token, "taken back");
});

test("a hidden page whose timers run once a minute keeps its connection", async () => {
  const socket = await up();
  for (let minute = 0; minute < 4; minute++) {
    pass(60);
    const [ping] = await world.until(() => socket.messages.length > 0 && socket.messages.splice(0));
    const told = world.statuses.length;
    await world.host(socket, "receive", { message: hex(ping!), now: 0 });
    await world.until(() => world.statuses.length > told);
  }
  assert.equal(Socket.made.length, 1);
  assert.equal(socket.closed, null);
});

test("a connection that does not answer is left, and dialled anew", async () => {
  const socket = await up();
  pass(6);
  await world.until(() => socket.messages.length > 0);
  pass(60);
  await world.until(() => socket.closed);
  world.session.tryNow();
  await world.accepted(1);
});

test("after a sleep nothing is waited for", async () => {
  const socket = await up();
  pass(600, true);
  await world.until(() => Socket.made.length === 2);
  assert.equal(socket.closed, 1000);
});

test("a frame that does not belong here ends it", async () => {
  const socket = await world.accepted(0);
  socket.say({ type: "side.unpaired" });
  await world.until(() => socket.closed);
  assert.equal(socket.closed, 4105);
  assert.equal(world.status.kind, "ended");
});

test("keys beyond the bound ring the bell", async () => {
  world.session.type(new Uint8Array(70_000));
  assert.deepEqual(world.said, ["bell"]);
});
