/**
 * What happens at the relay, as it happens: `GET /events`, read for as long as a person is signed in.
 *
 * A reader loads its lists at each `reset`, which the relay says behind the opening of a stream; so nothing is missed in
 * between. See docs/spec/protocol.md, Events.
 */

import { Refusal, type Rest } from "./rest.ts";

/** Seconds without a word, after which a connection is taken for dead. */
const SILENCE_S = 30;
const RETRY_S = 2;
/**
 * Seconds after which a page that nobody looks at gives its stream up. A browser has six connections to a relay that speaks
 * HTTP/1.1, for all of its pages together; who looks again is told what was missed.
 */
const UNSEEN_S = 10;

export interface FeedEvent {
  readonly name: string;
  readonly data: unknown;
}

export interface FeedEvents {
  event(event: FeedEvent): void;
  /** The stream is open, or it is not and will be tried again. */
  open(open: boolean): void;
  /** The relay does not know this device any more, or wants its person to sign in. */
  over(reason: Refusal): void;
}

/** Makes events of text as it comes (HTML Standard, Server-sent events; fields of one line only, as the relay sends them). */
export class FeedParser {
  lastId = "";
  #text = "";

  push(text: string): FeedEvent[] {
    const blocks = (this.#text + text).replaceAll("\r\n", "\n").split("\n\n");
    this.#text = blocks.pop() ?? "";
    return blocks.flatMap((block) => this.#event(block));
  }

  #event(block: string): FeedEvent[] {
    let name = "message";
    let data: string | null = null;
    for (const line of block.split("\n")) {
      const [, field, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
      if (field === "event") name = value ?? "";
      else if (field === "data") data = value ?? "";
      else if (field === "id") this.lastId = value ?? "";
    }
    return data === null ? [] : [{ name, data: JSON.parse(data) as unknown }];
  }
}

export class Feed {
  readonly #rest: Rest;
  readonly #events: FeedEvents;
  readonly #ended = new AbortController();
  #lastId = "";
  #current = new AbortController();
  #wake: () => void = () => undefined;
  #leaving: ReturnType<typeof setTimeout> | undefined;

  /** Begins at once. */
  constructor(rest: Rest, events: FeedEvents) {
    this.#rest = rest;
    this.#events = events;
    const { signal } = this.#ended;
    addEventListener("online", () => this.#wake(), { signal });
    addEventListener("offline", () => this.#current.abort(), { signal });
    document.addEventListener("visibilitychange", () => this.#seen(), { signal });
    void this.#run();
  }

  stop(): void {
    this.#ended.abort();
    clearTimeout(this.#leaving);
    this.#current.abort();
    this.#wake();
  }

  async #run(): Promise<void> {
    const { signal } = this.#ended;
    while (!signal.aborted) {
      let pause = RETRY_S;
      while (document.hidden && !signal.aborted) await new Promise<void>((resolve) => (this.#wake = resolve));
      if (signal.aborted) return;
      try {
        pause = await this.#read();
      } catch (error) {
        if (error instanceof Refusal) {
          if (error.status === 401) return this.#events.over(error);
          pause = Math.max(error.retryAfter, RETRY_S);
        }
        // Whatever else breaks a stream (the network, the relay, what stands between) is over with the next one.
      }
      if (signal.aborted) return;
      this.#events.open(false);
      await this.#rested(pause);
    }
  }

  #seen(): void {
    clearTimeout(this.#leaving);
    if (document.hidden) this.#leaving = setTimeout(() => this.#current.abort(), UNSEEN_S * 1000);
    else this.#wake();
  }

  /** Read one stream to its end; seconds until the next one. */
  async #read(): Promise<number> {
    const current = (this.#current = new AbortController());
    let silence = setTimeout(() => current.abort(), SILENCE_S * 1000);
    try {
      const headers: { [name: string]: string } = this.#lastId === "" ? {} : { "Last-Event-ID": this.#lastId };
      const { body } = await this.#rest.stream("/events", headers, current.signal);
      if (body === null) return RETRY_S;
      const parser = new FeedParser();
      const reader = body.pipeThrough(new TextDecoderStream()).getReader();
      this.#events.open(true);
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return RETRY_S;
        clearTimeout(silence);
        silence = setTimeout(() => current.abort(), SILENCE_S * 1000);
        const events = parser.push(value);
        this.#lastId = parser.lastId || this.#lastId;
        for (const event of events) this.#events.event(event);
        if (events.some(({ name }) => name === "reconnect")) return Math.random();
      }
    } finally {
      clearTimeout(silence);
      current.abort();
    }
  }

  #rested(seconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, seconds * 1000);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
