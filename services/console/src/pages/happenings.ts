/** What the relay tells as it happens, and lists that are read anew when something on them changed. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";

import { Feed } from "../device/feed.ts";
import type { Refusal, Rest } from "../device/rest.ts";
import { Watched, useWatched } from "../watched.ts";
import { useHere } from "./here.ts";
import type { Presence } from "./rows.ts";

export type Topic = "terminal_session.changed" | "host.updated" | "rights.changed" | "node.changed";

/** Milliseconds in which several changes are one reason to read anew. */
const GATHER_MS = 150;

interface PresenceData {
  readonly all: boolean;
  readonly hosts: { readonly [hostId: string]: Presence };
}

export class Happenings {
  /** Whether the stream is open: what the pages show is as it is now. */
  readonly live = new Watched(false);
  /** By host; null until the relay has told all of it. */
  readonly presence = new Watched<ReadonlyMap<string, Presence> | null>(null);
  readonly #feed: Feed;
  readonly #readers = new Set<(topic: string) => void>();

  constructor(rest: Rest, over: (reason: Refusal) => void) {
    this.#feed = new Feed(rest, {
      open: (open) => {
        this.live.set(open);
        if (!open) this.presence.set(null);
      },
      event: ({ name, data }) => (name === "presence" ? this.#present(data as PresenceData) : this.#tell(name)),
      over,
    });
  }

  stop(): void {
    this.#feed.stop();
  }

  /** Hear the name of each event; what is returned ends it. */
  hear(reader: (topic: string) => void): () => void {
    this.#readers.add(reader);
    return () => this.#readers.delete(reader);
  }

  #present({ all, hosts }: PresenceData): void {
    const before = all ? [] : (this.presence.value ?? []);
    this.presence.set(new Map([...before, ...Object.entries(hosts)]));
  }

  #tell(name: string): void {
    for (const reader of [...this.#readers]) reader(name);
  }
}

/** Presence of a host as it is now, else as its row had it. */
export function usePresence(): (host: { readonly host_id: string; readonly presence: Presence }) => Presence {
  const presence = useWatched(useHere().happenings.presence);
  return (host) => (presence === null ? host.presence : (presence.get(host.host_id) ?? "offline"));
}

export interface Loaded<T> {
  /** Null before the first answer. */
  readonly value: T | null;
  /** Of the last attempt; the value is then of an earlier one. */
  readonly error: unknown;
  reload(): void;
}

/** What `load` gives: now, at each event of `topics`, after an outage, and every `every` seconds if that is not 0. `key` names another question. */
export function useLoaded<T>(load: () => Promise<T>, topics: readonly Topic[], key = "", every = 0): Loaded<T> {
  const { happenings } = useHere();
  const [answer, setAnswer] = useState<{ value: T | null; error: unknown; key: string }>({ value: null, error: null, key });
  const question = useRef(load);
  question.current = load;
  const turn = useRef(0);
  const failed = useRef(false);

  const reload = useCallback(() => {
    const mine = ++turn.current;
    const settle = (change: Parameters<typeof setAnswer>[0], error: boolean): void => {
      if (mine !== turn.current) return;
      failed.current = error;
      setAnswer(change);
    };
    question.current().then(
      (value) => settle({ value, error: null, key }, false),
      (error: unknown) => settle((before) => ({ ...before, error }), true),
    );
  }, [key]);

  useEffect(() => {
    let gathering: ReturnType<typeof setTimeout> | undefined;
    const timer = every > 0 ? setInterval(reload, every * 1000) : undefined;
    const unhear = happenings.hear((topic) => {
      if (topic !== "reset" && !topics.includes(topic as Topic)) return;
      clearTimeout(gathering);
      gathering = setTimeout(reload, GATHER_MS);
    });
    // What could not be read while the relay was away is read when it is back; no event tells that.
    const unwatch = happenings.live.watch((live) => live && failed.current && reload());
    reload();
    return () => {
      turn.current++;
      unwatch();
      clearTimeout(gathering);
      clearInterval(timer);
      unhear();
    };
  }, [happenings, reload, every, topics.join()]);

  return { value: answer.key === key ? answer.value : null, error: answer.error, reload };
}
