/** The stream connection: dial, identify, then frames and channel messages in both directions. */

import { type Bytes, FrameError, LIMITS, type StreamFrame, decodeStreamFrame, encodeStreamIdentify, utf8 } from "../channel/index.ts";
import { type Keys, sha256, sign } from "./keys.ts";

const NORMAL = 1000;
const ABNORMAL = 1006;
const VIOLATION = 4105;
/** A browser may send no other codes than 1000 and these itself. */
const OWN_CODES = (code: number): number => (code === NORMAL || (code >= 3000 && code < 5000) ? code : NORMAL);

export interface StreamOptions {
  readonly relay: string;
  readonly keys: Keys;
  readonly path: string;
  readonly sessionId: string;
  readonly token: string;
  /** Seconds from the dial until the relay accepted. */
  readonly patience: number;
}

export interface StreamEvents {
  accepted(): void;
  received(item: StreamFrame | Bytes): void;
  /** Exactly once, unless we hung up before: the close code, 1006 for none, and the reason. */
  closed(code: number, reason: string): void;
  /** Instead of `closed`: nobody was found, or nobody who speaks. */
  unreached(): void;
}

/** One connection. Nothing is heard of it after `hangUp`. */
export class Stream {
  readonly #options: StreamOptions;
  readonly #socket: WebSocket;
  readonly #patience: ReturnType<typeof setTimeout>;
  #events: StreamEvents | null;
  #state: "dialling" | "identifying" | "accepted" = "dialling";
  #opened = false;

  constructor(options: StreamOptions, events: StreamEvents) {
    this.#options = options;
    this.#events = events;
    this.#socket = new WebSocket(options.relay.replace(/^http/, "ws") + options.path, LIMITS.STREAM_SUBPROTOCOL);
    this.#socket.binaryType = "arraybuffer";
    this.#socket.onopen = () => {
      this.#opened = true;
    };
    this.#socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => this.#message(data);
    this.#socket.onclose = ({ code, reason }) => this.#closed(code, reason);
    this.#patience = setTimeout(() => this.#giveUp(), options.patience * 1000);
  }

  /** Bytes that the browser holds for a relay that takes none. */
  get waiting(): number {
    return this.#socket.bufferedAmount;
  }

  send(item: string | Bytes): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(item);
  }

  hangUp(code: number): void {
    this.#events = null;
    clearTimeout(this.#patience);
    this.#socket.close(OWN_CODES(code));
  }

  #message(data: string | ArrayBuffer): void {
    try {
      const item = typeof data === "string" ? decodeStreamFrame(data) : new Uint8Array(data);
      if (this.#state === "accepted") this.#events?.received(item);
      else this.#handshake(item);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#fail(VIOLATION);
    }
  }

  #handshake(item: StreamFrame | Bytes): void {
    if (item instanceof Uint8Array) throw new FrameError("binary before the side was accepted");
    if (this.#state === "dialling" && item.type === "stream.hello") {
      this.#state = "identifying";
      void this.#identify(item.challenge);
    } else if (this.#state === "identifying" && item.type === "side.accepted") {
      this.#state = "accepted";
      clearTimeout(this.#patience);
      this.#events?.accepted();
    } else {
      throw new FrameError("not what comes now");
    }
  }

  async #identify(challenge: Bytes): Promise<void> {
    const { keys, relay, sessionId, token } = this.#options;
    const hashed = await sha256(utf8(token));
    this.send(encodeStreamIdentify(token, await sign(keys, "stream-identify", relay, challenge, sessionId, hashed)));
  }

  #fail(code: number): void {
    const events = this.#events;
    this.hangUp(code);
    events?.closed(code, "");
  }

  #giveUp(): void {
    const events = this.#events;
    this.hangUp(NORMAL);
    events?.unreached();
  }

  #closed(code: number, reason: string): void {
    clearTimeout(this.#patience);
    const events = this.#events;
    this.#events = null;
    // A socket that never opened found nobody; why, a page is not told.
    if (!this.#opened && code === ABNORMAL) events?.unreached();
    else events?.closed(code, reason);
  }
}
