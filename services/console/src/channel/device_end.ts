/**
 * The device's end of the end-to-end channel, without I/O and without a clock.
 *
 * Time is an argument (`now`: steady seconds). The shell calls `sendOutgoing` when its socket took what it gave before: what
 * waits is one ACK, one size, one PING and the input window, so a relay that does not read costs no memory. A pairing has one
 * object, which goes with it; what lives longer (positions, what was typed) is in the end itself.
 *
 * What message 2 says takes effect in two steps. Input follows at once, because the host may receive it from now on. The count
 * of output follows with the host's first record, which proves that the host took the change too: a channel that is lost before
 * that leaves no gap that the next one would not repeat.
 *
 * WebCrypto is asynchronous. What comes in is opened one message after another, in the order of the calls; what goes out is
 * sealed in the order of the calls. Whatever is ready only when its pairing is over is dropped, as if it was lost on the way.
 */

import { type Bytes, equal } from "./bytes.ts";
import type { DeviceEvent } from "./device_events.ts";
import { ChannelError } from "./errors.ts";
import { Arrivals, type Limits } from "./flow.ts";
import { type Accepted, decodeMessage2, encodeMessage1, prologue } from "./handshake.ts";
import { InputQueue } from "./input_queue.ts";
import { Initiator, type KeyPair, newChannelKey } from "./noise.ts";
import type { Channel, Greeting, Over, Pairing } from "./pairing.ts";
import { DATA_BYTES, Opener, type Record, Sealer } from "./records.ts";
import { Turns } from "./turns.ts";
import { LIMITS } from "./wire.ts";

export interface DeviceEndOptions {
  readonly channelKey: KeyPair;
  /** The raw key that the person trusts. */
  readonly hostChannelKey: Bytes;
  readonly sessionId: string;
  readonly hostId: string;
  readonly profile: string;
  readonly sessionUser: string;
  readonly term: string;
  readonly limits: Limits;
  /** Given by test vectors only. */
  readonly newEphemeral?: () => Promise<KeyPair>;
}

/** One session as the device sees it; lives over many pairings. */
export class DeviceEnd {
  readonly #options: DeviceEndOptions;
  readonly #input: InputQueue;
  readonly #printed = new Arrivals(LIMITS.OUTPUT_WINDOW_BYTES);
  readonly #incoming = new Turns();
  readonly #outgoing = new Turns();
  #pairing: Pairing | null = null;
  #size: { columns: number; rows: number } | null = null; // to send
  #lineage: Bytes | null = null;
  #lineageHeard = false; // the host said something under it, so it is the host's too
  #roundTrip: number | null = null;
  #openedOnce = false;
  #handedOver: Promise<void> = Promise.resolve();

  constructor(options: DeviceEndOptions) {
    this.#options = options;
    this.#input = new InputQueue(options.limits.inputWindow);
  }

  // ---- the pairing

  /** `side.paired` came: start a fresh handshake. Throws ChannelError for a host key that is none. */
  async pair(sessionToken: string, columns: number, rows: number, now: number): Promise<void> {
    this.unpaired();
    const options = this.#options;
    const presented = this.#printed.settled;
    const message1 = encodeMessage1({
      token: sessionToken,
      profile: options.profile,
      sessionUser: options.sessionUser,
      columns,
      rows,
      term: options.term,
      lineage: this.#lineage,
      outputProcessed: presented,
      inputSent: this.#input.sent,
    });
    const initiator = new Initiator(
      options.channelKey,
      options.hostChannelKey,
      prologue(options.sessionId, options.hostId),
      options.newEphemeral ?? newChannelKey,
    );
    const deadline = now + options.limits.handshakeTimeout;
    const pairing: Pairing = { state: { kind: "greeting", initiator, presented, deadline }, messages: [], waiting: 0 };
    this.#pairing = pairing;
    try {
      const message = await this.#incoming.take(() => initiator.write(message1));
      pairing.messages.push(message);
    } catch (error) {
      if (this.#pairing === pairing) this.#pairing = null;
      throw error;
    }
  }

  /**
   * `side.unpaired` came or the socket is lost: the channel is gone, the counts and what was typed are kept.
   *
   * What was received and is not opened yet is gone too; wait for `caughtUp` first, so that the last words are heard.
   */
  unpaired(): void {
    this.#pairing = null;
    this.#size = null; // the next message 1 carries the size of its time
  }

  /** When the handshake must be done; the shell closes with 4107 after it. */
  deadline(): number | null {
    const state = this.#pairing?.state;
    return state?.kind === "greeting" ? state.deadline : null;
  }

  /** Whether a channel is open. */
  get open(): boolean {
    return this.#channel !== null;
  }

  /** Whether a channel was ever open. */
  get openedOnce(): boolean {
    return this.#openedOnce;
  }

  // ---- messages

  /** One binary frame. Throws ChannelError once; after it nothing more is shown in this pairing. */
  receive(message: Bytes, now: number): Promise<DeviceEvent[]> {
    const before = this.#handedOver;
    const events = this.#receive(message, now);
    // Resolves one step behind `events`, so when their receiver had them.
    this.#handedOver = events.then(nothing, nothing).then(() => before);
    return events;
  }

  /** Resolves when everything received until now is opened, and its events are with who waited for them. */
  caughtUp(): Promise<void> {
    return this.#handedOver;
  }

  /** Send the binary frames that are due now, in order. ACK, RESIZE and PING overtake what waits to be typed. */
  async sendOutgoing(send: (message: Bytes) => void): Promise<void> {
    const pairing = this.#pairing;
    const messages: (Bytes | Promise<Bytes>)[] = pairing?.messages.splice(0) ?? [];
    const channel = this.#channel;
    if (channel) for (const record of this.#due(channel)) messages.push(channel.sealer.seal(record));
    if (messages.length === 0) return;
    const sealed = Promise.all(messages);
    await this.#outgoing.take(async () => {
      const ready = await sealed;
      if (this.#pairing === pairing && pairing?.state.kind !== "over") ready.forEach((message) => send(message));
    });
  }

  // ---- input

  /** Keys typed: queued behind the input window and any outage. The caller bounds `pendingInput`. */
  write(data: Bytes): void {
    this.#input.write(data);
  }

  /** Bytes typed that the host has not acknowledged as written, sent or not. */
  get pendingInput(): number {
    return this.#input.pending;
  }

  /** Of these, the bytes not sent yet. */
  get unsentInput(): number {
    return this.#input.unsent;
  }

  /** Forget what was not sent; returns how many bytes. */
  dropUnsent(): number {
    return this.#input.dropUnsent();
  }

  /** The terminal has a new size, each of 16 bits; only the latest is sent. Unpaired, `pair` takes it. */
  resize(columns: number, rows: number): void {
    if (this.#pairing !== null) this.#size = { columns, rows };
  }

  // ---- output

  /**
   * The terminal took `count` bytes of output (an exit counts 1).
   *
   * Acknowledged after every quarter of what was not, and when all that came is processed.
   */
  processed(count: number): void {
    this.#printed.settle(count);
    if (this.#channel) this.#acknowledgeWhenDue(this.#channel);
  }

  /** Acknowledge what was processed now. */
  flush(): void {
    if (this.#channel) this.#channel.ackDue = true;
  }

  /** Measure the round trip, unless a ping is on its way or no channel is open. */
  ping(now: number): void {
    const channel = this.#channel;
    if (channel === null || channel.pingedAt !== null) return;
    channel.pingedAt = now;
    channel.pingDue = true;
  }

  /** Seconds of the last answered ping. */
  get roundTrip(): number | null {
    return this.#roundTrip;
  }

  // ---- private

  get #channel(): Channel | null {
    return this.#pairing?.state.kind === "channel" ? this.#pairing.state : null;
  }

  async #receive(message: Bytes, now: number): Promise<DeviceEvent[]> {
    const pairing = this.#pairing;
    if (pairing === null) throw new ChannelError("a message outside of a pairing");
    if (pairing.state.kind === "over") return [];
    const waiting = Math.max(1, message.length - RECORD_OVERHEAD);
    pairing.waiting += waiting;
    try {
      if (pairing.waiting > WAITING_BYTES) throw new ChannelError("more came in than any window holds");
      return await this.#incoming.take(() => this.#events(pairing, message, now));
    } catch (error) {
      pairing.state = OVER;
      if (this.#pairing === pairing) throw error;
      return []; // nobody is interested any more
    } finally {
      pairing.waiting -= waiting;
    }
  }

  async #events(pairing: Pairing, message: Bytes, now: number): Promise<DeviceEvent[]> {
    const { state } = pairing;
    switch (state.kind) {
      case "greeting":
        return this.#answered(pairing, state, message, now);
      case "channel":
        return this.#record(pairing, state, message, now);
      case "over":
        return [];
    }
  }

  async #answered(pairing: Pairing, greeting: Greeting, message: Bytes, now: number): Promise<DeviceEvent[]> {
    if (now > greeting.deadline) throw new ChannelError("the handshake took too long");
    const answer = decodeMessage2(await greeting.initiator.read(message));
    const { send, receive } = await greeting.initiator.split();
    if (this.#pairing !== pairing || pairing.state !== greeting) return [];
    if (answer.type === "refused") {
      pairing.state = OVER;
      return [{ kind: "refusal", code: answer.code }];
    }
    const droppedInput = this.#follow(answer, greeting.presented);
    pairing.state = {
      kind: "channel",
      sealer: new Sealer(send),
      opener: new Opener(receive),
      restartAt: answer.resume === "exact" ? null : answer.outputPosition,
      acknowledged: answer.outputPosition,
      ackDue: true,
      pingDue: false,
      pingedAt: null,
      repainting: false,
      repaintRoom: LIMITS.REPAINT_TOTAL_BYTES,
      exited: false,
    };
    this.#openedOnce = true;
    return [{ kind: "opened", resume: answer.resume, outputPosition: answer.outputPosition, droppedInput }];
  }

  /** Take over the host's counts; returns how many bytes typed were dropped. */
  #follow(answer: Accepted, presented: number): number {
    const known = equal(answer.lineage, this.#lineage);
    if (answer.resume === "new" && answer.inputReceived === 0) {
      // Sent behind another device's input, what was typed for the old lineage would mix with it; but of a lineage
      // that the host never took nobody knows, and what never left cannot be there.
      const dropped = this.#input.restart(!this.#lineageHeard && this.#input.sent === 0);
      this.#lineage = answer.lineage;
      this.#lineageHeard = false;
      return dropped;
    }
    if (answer.resume === "repaint" && known) {
      this.#lineageHeard = true;
      this.#input.resume(answer.inputReceived);
      return 0;
    }
    if (answer.resume === "exact" && known && answer.outputPosition === presented) {
      this.#lineageHeard = true;
      this.#input.resume(answer.inputReceived);
      this.#printed.resume(presented);
      return 0;
    }
    throw new ChannelError("the host resumes what this device did not present");
  }

  async #record(pairing: Pairing, channel: Channel, message: Bytes, now: number): Promise<DeviceEvent[]> {
    const record = await channel.opener.open(message);
    if (this.#pairing !== pairing || pairing.state !== channel) return [];
    if (channel.restartAt !== null) {
      this.#lineageHeard = true;
      this.#printed.restart(channel.restartAt);
      channel.restartAt = null;
    }
    return record === null ? [] : this.#heard(channel, record, now);
  }

  #heard(channel: Channel, record: Record, now: number): DeviceEvent[] {
    switch (record.kind) {
      case "data": {
        if (channel.exited || channel.repainting) break;
        this.#printed.admit(record.data.length);
        const fresh = this.#printed.arrive(record.data.length);
        this.#acknowledgeWhenDue(channel);
        return fresh > 0 ? [{ kind: "output", data: record.data.subarray(-fresh) }] : [];
      }
      case "repaint":
        if (channel.exited) break;
        channel.repainting = !record.last;
        channel.repaintRoom -= record.data.length;
        if (channel.repaintRoom < 0) throw new ChannelError("a repaint beyond its bound");
        return [record];
      case "exit": {
        if (channel.exited || channel.repainting) break;
        channel.exited = true;
        const fresh = this.#printed.arrive(1);
        this.#acknowledgeWhenDue(channel);
        return fresh > 0 ? [{ kind: "exited", status: record.status }] : [];
      }
      case "notice":
        return [record];
      case "ack":
        this.#input.acknowledge(record.position);
        return [{ kind: "inputAcknowledged", position: record.position }];
      case "pong": {
        if (channel.pingedAt === null) break;
        const roundTrip = now - channel.pingedAt;
        channel.pingedAt = null;
        this.#roundTrip = roundTrip;
        return [{ kind: "pong", roundTrip }];
      }
    }
    throw new ChannelError("a record that is not allowed here");
  }

  #acknowledgeWhenDue(channel: Channel): void {
    // Repeated output moves this too: it is processed when it arrives.
    if (this.#printed.due(channel.acknowledged)) channel.ackDue = true;
  }

  *#due(channel: Channel): Generator<Record> {
    if (channel.ackDue) {
      channel.ackDue = false;
      channel.acknowledged = channel.restartAt ?? this.#printed.acknowledgeable;
      yield { kind: "ack", position: channel.acknowledged };
    }
    if (this.#size !== null) {
      const size = this.#size;
      this.#size = null;
      yield { kind: "resize", ...size };
    }
    if (channel.pingDue) {
      channel.pingDue = false;
      yield { kind: "ping" };
    }
    for (let data = this.#input.take(DATA_BYTES); data.length > 0; data = this.#input.take(DATA_BYTES)) {
      yield { kind: "data", data };
    }
  }
}

function nothing(): void {}

const OVER: Over = { kind: "over" };

/** The tag and the type of a record. */
const RECORD_OVERHEAD = 17;
/** An honest host has a window and a repaint on the way, and some records that need no window. */
const WAITING_BYTES = LIMITS.OUTPUT_WINDOW_BYTES + LIMITS.REPAINT_TOTAL_BYTES + LIMITS.RECORD_BYTES;
