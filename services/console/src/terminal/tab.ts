/** One terminal that is open in this page: its screen, its session, and what its status line says. */

import { LATER } from "../device/reconnect.ts";
import { Refusal, type Rest, Unreachable } from "../device/rest.ts";
import type { Status } from "../device/session_status.ts";
import { TerminalSession } from "../device/terminal_session.ts";
import type { Identity, Vault } from "../device/vault.ts";
import { Watched } from "../watched.ts";
import { type Asking, type Place, type Ready, attachTerminal, needsConfirmation } from "./opening.ts";
import { TerminalScreen } from "./screen.ts";

/** Milliseconds for which a bell is seen. */
const BELL_MS = 400;
/** Milliseconds until an attach is tried again that failed for what passes by itself. */
const AGAIN_MS = 3000;

/** Why there is no session here. */
export type Why =
  /** It is over. */
  | "over"
  /** The person has to confirm. */
  | "unconfirmed"
  /** It passes, and is tried again. */
  | "away"
  | "refused";

/** `ended` of a status may still be a session that runs: then the person may attach again. */
export type TabState =
  | { readonly kind: "attaching" }
  | { readonly kind: "refused"; readonly error: unknown; readonly why: Why }
  | { readonly kind: "running"; readonly status: Status };

/** Where a tab works. */
export interface Surroundings {
  readonly rest: Rest;
  readonly vault: Vault;
  readonly identity: Identity;
}

export class Tab {
  readonly place: Place;
  readonly sessionId: string;
  readonly screen: TerminalScreen;
  readonly state: Watched<TabState> = new Watched<TabState>({ kind: "attaching" });
  readonly title = new Watched("");
  readonly rings = new Watched(false);
  readonly searching = new Watched(false);
  /** The last line for the person, until they put it away. */
  readonly notice = new Watched<string | null>(null);
  /** Goes up each time the person wants to leave the terminal by keyboard. */
  readonly left = new Watched(0);
  readonly #around: Surroundings;
  #session: TerminalSession | null = null;
  #ready: Ready | null;
  #shown = false;
  #disposed = false;
  #again: ReturnType<typeof setTimeout> | undefined;

  /** `ready` of a session that was opened just now; null to attach to one that runs. */
  constructor(place: Place, sessionId: string, ready: Ready | null, around: Surroundings) {
    this.place = place;
    this.sessionId = sessionId;
    this.#ready = ready;
    this.#around = around;
    this.screen = new TerminalScreen({
      typed: (data) => this.#session?.type(data),
      resized: () => this.#session?.resized(),
      titled: (title) => this.title.set(title),
      said: (text) => this.notice.set(text),
      rang: () => this.#ring(),
      search: () => this.searching.set(true),
      leave: () => this.left.set(this.left.value + 1),
    });
  }

  /** The screen's element is on the page: begin. */
  shown(): void {
    if (this.#shown) return;
    this.#shown = true;
    this.screen.open();
    if (this.#ready === null) void this.attach("never");
    else this.#start(this.#ready);
  }

  /** Connect anew. */
  async attach(asking: Asking): Promise<void> {
    clearTimeout(this.#again);
    this.state.set({ kind: "attaching" });
    const { rest, vault } = this.#around;
    try {
      this.#start(await attachTerminal(rest, vault, this.place, this.sessionId, asking));
    } catch (error) {
      if (this.#disposed) return;
      const why = whyOf(error);
      this.state.set({ kind: "refused", error, why });
      const asked = error instanceof Refusal ? error.retryAfter * 1000 : 0;
      if (why === "away") this.#again = setTimeout(() => void this.attach("never"), Math.max(asked, AGAIN_MS));
    }
  }

  tryNow(): void {
    this.#session?.tryNow();
  }

  woke(): void {
    const state = this.state.value;
    if (state.kind === "refused" && state.why === "away") void this.attach("never");
    else this.#session?.woke();
  }

  dropTyped(): void {
    this.#session?.dropTyped();
  }

  /** End the session itself. Throws Refusal and Unreachable. */
  async end(): Promise<void> {
    await this.#around.rest.call("POST", `/terminal/sessions/${this.sessionId}/close`, {});
  }

  /** Leave the page; the session goes on. */
  dispose(): void {
    this.#disposed = true;
    clearTimeout(this.#again);
    this.#session?.leave();
    this.#session = null;
    this.screen.dispose();
  }

  #start({ opened, trusted, runs }: Ready): void {
    if (this.#disposed) return;
    this.#session?.leave();
    this.#ready = null;
    if (trusted.first) {
      this.notice.set(`First time on ${this.place.hostName} from this browser. Its key ${trusted.fingerprint} is remembered now.`);
    }
    const session: TerminalSession = new TerminalSession(opened, {
      rest: this.#around.rest,
      keys: this.#around.identity.keys,
      hostChannelKey: trusted.key,
      screen: this.screen,
      runs,
      onStatus: (status) => {
        if (this.#session === session) this.state.set({ kind: "running", status });
      },
    });
    this.#session = session;
  }

  /** A program may ring without end: once at a time. */
  #ring(): void {
    if (this.rings.value) return;
    this.rings.set(true);
    setTimeout(() => this.rings.set(false), BELL_MS);
  }
}

function whyOf(error: unknown): Why {
  if (error instanceof Unreachable) return "away";
  if (needsConfirmation(error)) return "unconfirmed";
  if (!(error instanceof Refusal)) return "refused";
  if (error.code === "session_closed" || error.code === "session_unknown") return "over";
  return LATER.has(error.code) || error.status === 503 ? "away" : "refused";
}
