/**
 * One terminal session as a person in a browser lives it: the channel, the connection, and how both come back.
 *
 * The rules are those of `bothy_device/session.py` (docs/spec/protocol.md: both sides, flow control, end). This is the shell
 * around them: it owns one socket at a time, one timer, and the end of the channel that outlives its sockets.
 */

import { type Bytes, ChannelError, DEFAULT_LIMITS, DeviceEnd, type DeviceEvent, LIMITS, SIDE_READY, type StreamFrame, textOf } from "../channel/index.ts";
import { Display } from "./display.ts";
import { type Opened, attach } from "./opened.ts";
import { type Effect, type Event, type State, deadline, start, step } from "./reconnect.ts";
import { closedBecause, refusedBecause } from "./reasons.ts";
import { Refusal, type Rest, Unreachable } from "./rest.ts";
import { DEFAULTS, type Limits, type Screen, type Status } from "./session_status.ts";
import { Stream } from "./stream.ts";
import type { Keys } from "./keys.ts";

const NORMAL = 1000;
const VIOLATION = 4105;
const CHANNEL_FAILED = 4107;
const SESSION_ENDED = 4100;

export interface SessionOptions {
  readonly rest: Rest;
  readonly keys: Keys;
  /** The host key that the person trusts, raw. */
  readonly hostChannelKey: Bytes;
  readonly screen: Screen;
  readonly onStatus: (status: Status) => void;
  /** It was attached to, so a loss is an outage from the beginning; an opening that fails has ended the session. */
  readonly runs?: boolean;
  readonly limits?: Limits;
}

export class TerminalSession {
  readonly #options: SessionOptions;
  readonly #limits: Limits;
  readonly #end: DeviceEnd;
  readonly #display: Display;
  #opened: Opened;
  #way: State;
  #stream: Stream | null = null;
  #attaching: AbortController | null = null;
  #paired = false;
  #failedAt: number | null = null;
  #cause: string | null = null;
  #exitStatus: number | null = null;
  #exitsOwed = 0;
  #ended: string | null = null;
  #over = false;
  #askedAt: number | null = null; // a ping went out, and nothing was heard since
  #pingAt = now();
  #timer: ReturnType<typeof setTimeout> | null = null;
  #ahead = ahead();

  constructor(opened: Opened, options: SessionOptions) {
    this.#opened = opened;
    this.#options = options;
    this.#limits = options.limits ?? DEFAULTS;
    this.#end = new DeviceEnd({
      channelKey: options.keys.channel,
      hostChannelKey: options.hostChannelKey,
      sessionId: opened.session_id,
      hostId: opened.host_id,
      profile: opened.profile,
      sessionUser: opened.session_user,
      term: "xterm-256color",
      limits: DEFAULT_LIMITS,
    });
    this.#display = new Display(
      options.screen.draw,
      (count) => this.#took(count),
      () => this.#settleExit(),
    );
    this.#way = { ...start(now(), opened.expires_in_s), reached: options.runs ?? false };
    this.#dial();
    this.#schedule();
  }

  get sessionId(): string {
    return this.#opened.session_id;
  }

  /** Keys and pasted text, as bytes for the program. */
  type(data: Bytes): void {
    if (this.#ended !== null || this.#exitStatus !== null) return;
    const room = (this.#end.open ? this.#limits.paste : this.#limits.inputBuffer) - this.#end.pendingInput;
    if (data.length > room) {
      this.#options.screen.bell();
      return;
    }
    this.#end.write(data);
    void this.#flush();
    this.#tell();
  }

  /** Forget what was typed and not sent. */
  dropTyped(): void {
    this.#end.dropUnsent();
    this.#tell();
  }

  /** The terminal has another size. */
  resized(): void {
    const { columns, rows } = this.#size();
    this.#end.resize(columns, rows);
    void this.#flush();
  }

  /** The person does not want to wait, or takes the session back from another device. */
  tryNow(): void {
    this.#go({ kind: "now" });
  }

  /** The network changed, or the page was asleep: what stands may be dead, and nothing is worth a wait. */
  woke(): void {
    if (this.#ended === null) this.#go({ kind: "woke" });
  }

  /** Leave; the session goes on without us. */
  leave(): void {
    this.#finish("left");
    this.#drop(NORMAL);
  }

  // ---- the way

  #go(event: Event): void {
    if (this.#ended !== null) return;
    const [way, effect] = step(this.#way, event, now(), Math.random());
    this.#way = way;
    if (effect !== null) this.#obey(effect);
    this.#schedule();
    this.#tell();
  }

  #obey(effect: Effect): void {
    switch (effect.kind) {
      case "dial":
        this.#dial();
        break;
      case "attach":
        void this.#attach(effect.take);
        break;
      case "stop":
        this.#finish(this.#cause ?? "the connection was lost");
        break;
    }
  }

  #dial(): void {
    this.#drop(NORMAL);
    const stream: Stream = new Stream(
      {
        relay: this.#options.rest.relay,
        keys: this.#options.keys,
        path: this.#opened.stream_path,
        sessionId: this.#opened.session_id,
        token: this.#opened.stream_token,
        patience: this.#limits.patience,
      },
      {
        accepted: () => {
          this.#askedAt = null;
          this.#pingAt = now();
          this.#go({ kind: "accepted" });
        },
        received: (item) => void this.#received(stream, item),
        closed: (code, reason) => void this.#lost(stream, code, reason),
        unreached: () => void this.#lost(stream, null, ""),
      },
    );
    this.#stream = stream;
  }

  async #attach(take: boolean): Promise<void> {
    this.#drop(NORMAL);
    const { rest } = this.#options;
    const asking = new AbortController();
    this.#attaching = asking;
    let event: Event;
    try {
      const opened = await attach(rest, this.#opened, take, asking.signal);
      if (opened === null) {
        event = { kind: "refused", code: "replaced", retryAfter: 0 };
      } else {
        this.#opened = opened;
        event = { kind: "attached", tokenUntil: now() + opened.expires_in_s };
      }
    } catch (error) {
      if (asking.signal.aborted) return;
      if (error instanceof Refusal) {
        this.#cause = error.message;
        this.#over ||= error.code === "session_closed" || error.code === "session_unknown";
        event = { kind: "refused", code: error.code, retryAfter: error.retryAfter };
      } else if (error instanceof Unreachable) {
        this.#cause = "the relay is out of reach";
        event = { kind: "unreached" };
      } else {
        throw error;
      }
    }
    if (this.#attaching === asking) {
      this.#attaching = null;
      this.#go(event);
    }
  }

  async #lost(stream: Stream, code: number | null, reason: string): Promise<void> {
    await this.#end.caughtUp(); // the last words of the host may be on their last metres
    if (this.#stream !== stream) return;
    this.#stream = null;
    this.#unpaired();
    this.#failedAt = null;
    if (code === null) {
      this.#cause = navigator.onLine ? "the relay is out of reach" : "this machine has no network";
      this.#go({ kind: "unreached" });
    } else {
      this.#cause = code === SESSION_ENDED ? closedBecause(reason) : textOf(code);
      this.#over ||= code === SESSION_ENDED;
      this.#go({ kind: "lost", code });
    }
  }

  /** We leave this connection: the relay hears `code`, and the way goes on as after `event`. */
  #hangUp(code: number, event: Event): void {
    this.#drop(code);
    this.#cause = event.kind === "declined" ? refusedBecause(event.code) : textOf(code);
    this.#go(event);
  }

  #drop(code: number): void {
    this.#attaching?.abort();
    this.#attaching = null;
    this.#stream?.hangUp(code);
    this.#stream = null;
    this.#unpaired();
    this.#failedAt = null;
  }

  #unpaired(): void {
    this.#paired = false;
    this.#askedAt = null;
    this.#end.unpaired();
  }

  // ---- what comes

  async #received(stream: Stream, item: StreamFrame | Bytes): Promise<void> {
    this.#askedAt = null;
    if (item instanceof Uint8Array) {
      if (this.#paired) await this.#message(stream, item);
      else this.#hangUp(VIOLATION, { kind: "lost", code: VIOLATION });
      return;
    }
    switch (item.type) {
      case "side.paired":
        if (this.#paired || item.sessionToken === null) return this.#hangUp(VIOLATION, { kind: "lost", code: VIOLATION });
        this.#paired = true;
        return this.#pair(item.sessionToken);
      case "side.unpaired":
        if (!this.#paired) return this.#hangUp(VIOLATION, { kind: "lost", code: VIOLATION });
        await this.#end.caughtUp();
        if (this.#stream !== stream) return;
        this.#unpaired();
        this.#failedAt = null;
        this.#cause = "the host is away";
        stream.send(SIDE_READY);
        return this.#tell();
      case "stream.hello":
      case "side.accepted":
        return this.#hangUp(VIOLATION, { kind: "lost", code: VIOLATION });
    }
  }

  async #pair(token: string): Promise<void> {
    const { columns, rows } = this.#size();
    try {
      await this.#end.pair(token, columns, rows, now());
    } catch (error) {
      if (!(error instanceof ChannelError)) throw error;
      this.#failedAt = now();
    }
    await this.#flush();
    this.#schedule();
  }

  async #message(stream: Stream, message: Bytes): Promise<void> {
    if (this.#failedAt !== null) return;
    let events: DeviceEvent[];
    try {
      events = await this.#end.receive(message, now());
    } catch (error) {
      if (!(error instanceof ChannelError)) throw error;
      if (this.#stream === stream) this.#failedAt = now();
      return this.#schedule();
    }
    for (const event of events) this.#channelEvent(event);
    await this.#flush();
  }

  #channelEvent(event: DeviceEvent): void {
    switch (event.kind) {
      case "opened":
        this.#display.opened(event.resume === "exact");
        this.#cause = null;
        this.#pingAt = now();
        if (event.droppedInput > 0) {
          this.#options.screen.say(`${event.droppedInput} bytes that you typed were not sent: another device typed meanwhile`);
        }
        this.resized();
        this.#go({ kind: "paired" });
        break;
      case "refusal":
        this.#hangUp(NORMAL, { kind: "declined", code: event.code });
        break;
      case "output":
        this.#display.output(event.data);
        break;
      case "repaint":
        this.#display.repaint(event.data, event.last);
        break;
      case "exited":
        this.#exitStatus = event.status;
        this.#exitsOwed += 1;
        this.#settleExit();
        break;
      case "notice":
        this.#options.screen.say(event.text);
        break;
      case "pong":
      case "inputAcknowledged":
        this.#tell();
        break;
    }
  }

  // ---- what goes

  #took(count: number): void {
    this.#end.processed(count);
    void this.#flush();
  }

  /** An exit counts as one position, behind all output; one that comes again behind a repaint counts again. */
  #settleExit(): void {
    if (this.#exitsOwed === 0 || this.#display.busy) return;
    this.#end.processed(this.#exitsOwed);
    this.#exitsOwed = 0;
    void this.#flush().then(() => {
      this.#finish(`the program ended with status ${this.#exitStatus}`);
      this.#drop(NORMAL);
    });
  }

  async #flush(): Promise<void> {
    const stream = this.#stream;
    if (stream === null || stream.waiting > this.#limits.socketBuffer) return; // the timer looks again
    await this.#end.sendOutgoing((message) => stream.send(message));
  }

  // ---- time

  #schedule(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#ended !== null) return;
    const failed = this.#failedAt === null ? null : this.#failedAt + this.#limits.failGrace;
    const due = [this.#end.deadline(), failed, deadline(this.#way)].filter((each) => each !== null);
    const wait = Math.min(1, ...due.map((each) => each - now()));
    this.#timer = setTimeout(() => this.#tick(), Math.max(0, wait * 1000));
  }

  #tick(): void {
    // The time between two ticks tells nothing: a browser runs the timers of a hidden page once a minute.
    const before = this.#ahead;
    this.#ahead = ahead();
    if (this.#ahead - before > ASLEEP) return this.woke();
    const handshake = this.#end.deadline();
    const failed = this.#failedAt !== null && now() >= this.#failedAt + this.#limits.failGrace;
    if (failed || (handshake !== null && now() >= handshake)) {
      return this.#hangUp(CHANNEL_FAILED, { kind: "lost", code: CHANNEL_FAILED });
    }
    if (this.#end.open && now() >= this.#pingAt) {
      this.#pingAt = now() + this.#limits.pingEvery;
      this.#end.ping(now());
      this.#askedAt ??= now();
    }
    if (this.#askedAt !== null && now() - this.#askedAt > this.#limits.silence) {
      return this.#hangUp(NORMAL, { kind: "lost", code: 1006 });
    }
    void this.#flush();
    this.#go({ kind: "passed" });
  }

  // ---- words

  #size(): { columns: number; rows: number } {
    const { columns, rows } = this.#options.screen.size();
    const clamp = (value: number): number => Math.min(Math.max(value, LIMITS.SIZE_MIN), LIMITS.SIZE_MAX);
    return { columns: clamp(columns), rows: clamp(rows) };
  }

  #finish(text: string): void {
    if (this.#ended !== null) return;
    this.#ended = text;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#tell();
  }

  #tell(): void {
    this.#options.onStatus(this.#status());
  }

  #status(): Status {
    const waiting = this.#end.pendingInput;
    if (this.#ended !== null) {
      return { kind: "ended", exitStatus: this.#exitStatus, over: this.#over || this.#exitStatus !== null, text: this.#ended };
    }
    if (this.#way.phase === "replaced") return { kind: "replaced" };
    if (this.#end.open) return { kind: "up", roundTrip: this.#end.roundTrip, waiting };
    const due = deadline(this.#way);
    return { kind: "connecting", cause: this.#cause, retryIn: due === null ? null : Math.max(0, due - now()), waiting };
  }
}

function now(): number {
  return performance.now() / 1000;
}

/** How far the clock on the wall is ahead of the steady one, which stands while the machine sleeps. */
function ahead(): number {
  return Date.now() / 1000 - now();
}

/** Seconds asleep behind which no connection is worth a try. */
const ASLEEP = 5;
