/**
 * The terminals of this page. A reload finds them again: which ones they are is kept for as long as the browser's tab lives, for
 * each person by themselves.
 */

import { Watched } from "../watched.ts";
import type { Place, Ready } from "./opening.ts";
import { type Surroundings, Tab } from "./tab.ts";

const KEPT = "bothy.terminals.";

interface Kept {
  readonly place: Place;
  readonly sessionId: string;
}

export class Tabs {
  readonly list: Watched<readonly Tab[]>;
  readonly #around: Surroundings;
  readonly #kept: string;
  readonly #ended = new AbortController();

  constructor(around: Surroundings) {
    this.#around = around;
    this.#kept = KEPT + around.identity.personId;
    this.list = new Watched<readonly Tab[]>(keptAs(this.#kept).map((each) => new Tab(each.place, each.sessionId, null, around)));
    const { signal } = this.#ended;
    const woke = (): void => this.list.value.forEach((tab) => tab.woke());
    addEventListener("online", woke, { signal });
    addEventListener("offline", woke, { signal });
    // A page that comes out of the browser's cache was as good as asleep.
    addEventListener("pageshow", (event) => event.persisted && woke(), { signal });
  }

  find(sessionId: string): Tab | undefined {
    return this.list.value.find((tab) => tab.sessionId === sessionId);
  }

  /** A session that was opened just now. */
  opened(place: Place, ready: Ready): Tab {
    return this.#add(new Tab(place, ready.opened.session_id, ready, this.#around));
  }

  /** A session that runs already: the tab that it has, or a new one. */
  attached(place: Place, sessionId: string, ready: Ready): Tab {
    return this.find(sessionId) ?? this.#add(new Tab(place, sessionId, ready, this.#around));
  }

  close(tab: Tab): void {
    this.#set(this.list.value.filter((each) => each !== tab));
    tab.dispose();
  }

  /** Close all of them, as their sessions end with the device. */
  forget(): void {
    for (const tab of this.list.value) this.close(tab);
  }

  /** Leave all of them; who signs in again finds them again. */
  dispose(): void {
    this.#ended.abort();
    for (const tab of this.list.value) tab.dispose();
  }

  #add(tab: Tab): Tab {
    this.#set([...this.list.value, tab]);
    return tab;
  }

  #set(tabs: readonly Tab[]): void {
    this.list.set(tabs);
    const kept: readonly Kept[] = tabs.map(({ place, sessionId }) => ({ place, sessionId }));
    sessionStorage.setItem(this.#kept, JSON.stringify(kept));
  }
}

/** This page wrote it, so it has its shape. */
function keptAs(name: string): readonly Kept[] {
  return JSON.parse(sessionStorage.getItem(name) ?? "[]") as readonly Kept[];
}
