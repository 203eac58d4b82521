/** One terminal with what belongs to it: notices, search, the state that it is in, and its status line. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import type { Tab } from "../terminal/tab.ts";
import { useWatched } from "../watched.ts";
import { useHere } from "./here.ts";
import { StateBar } from "./state_bar.tsx";
import { StatusLine } from "./status_line.tsx";
import { go } from "./whereabouts.ts";

export function TerminalPanel({ tab, shown }: { readonly tab: Tab; readonly shown: boolean }): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const [asking, setAsking] = useState(false);
  const rings = useWatched(tab.rings);
  const { tabs } = useHere();

  useEffect(() => {
    place.current?.append(tab.screen.element);
    tab.shown();
  }, [tab]);
  useEffect(() => {
    if (!shown) return;
    tab.screen.fit();
    tab.screen.focus();
  }, [tab, shown]);

  const close = (): void => {
    tabs.close(tab);
    go({ page: "terminals", sessionId: null });
  };
  return (
    <div class="panel" role="tabpanel" id={`panel-${tab.sessionId}`} aria-labelledby={`tab-${tab.sessionId}`} hidden={!shown}>
      <Notice tab={tab} />
      <SearchBar tab={tab} />
      <div class={rings ? "screen-place rings" : "screen-place"} ref={place} />
      <StateBar tab={tab} close={close} asking={asking} asked={() => setAsking(false)} />
      <StatusLine tab={tab} close={close} ask={() => setAsking(true)} />
    </div>
  );
}

/** A line of the relay or the host, until it is put away. */
function Notice({ tab }: { readonly tab: Tab }): JSX.Element | null {
  const { say } = useHere();
  const text = useWatched(tab.notice);
  useEffect(() => {
    if (text !== null) say(`${tab.place.hostName}: ${text}`);
  }, [text]);
  if (text === null) return null;
  const away = (): void => {
    tab.notice.set(null);
    tab.screen.focus();
  };
  return (
    <div class="bar note">
      <span>{text}</span>
      <span class="spring" />
      <button type="button" class="plain small" onClick={away}>
        Dismiss
      </button>
    </div>
  );
}

function SearchBar({ tab }: { readonly tab: Tab }): JSX.Element | null {
  const searching = useWatched(tab.searching);
  const field = useRef<HTMLInputElement>(null);
  const [found, setFound] = useState(true);
  useEffect(() => {
    if (searching) field.current?.select();
  }, [searching]);
  if (!searching) return null;

  const find = (backwards: boolean): void => setFound(tab.screen.find(field.current?.value ?? "", backwards));
  const end = (): void => {
    tab.searching.set(false);
    tab.screen.endSearch();
  };
  return (
    <form
      class="bar search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        find(true);
      }}
      onKeyDown={(event) => event.key === "Escape" && end()}
    >
      <input ref={field} type="search" aria-label="Search in the terminal" placeholder="Search" onInput={() => find(true)} />
      <button type="submit" class="plain small">
        Previous
      </button>
      <button type="button" class="plain small" onClick={() => find(false)}>
        Next
      </button>
      <span class="quiet" role="status">
        {found ? "" : "Not found"}
      </span>
      <span class="spring" />
      <button type="button" class="plain small" onClick={end}>
        Close
      </button>
    </form>
  );
}
