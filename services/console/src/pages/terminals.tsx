/** The open terminals as tabs. The page stays behind the others, so that each terminal goes on where it is. */

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

import type { Tab } from "../terminal/tab.ts";
import { useWatched } from "../watched.ts";
import { useHere } from "./here.ts";
import { Empty } from "./parts.tsx";
import { hashOf } from "./route.ts";
import { statusOf } from "./status_words.ts";
import { TerminalPanel } from "./terminal_panel.tsx";
import { go } from "./whereabouts.ts";

export function TerminalsPage({ shown, sessionId }: { readonly shown: boolean; readonly sessionId: string | null }): JSX.Element {
  const { tabs } = useHere();
  const list = useWatched(tabs.list);
  const last = useRef<string | null>(null);
  const active = list.find((tab) => tab.sessionId === (sessionId ?? last.current)) ?? list[0];
  if (shown && active !== undefined) last.current = active.sessionId;

  return (
    <section class="terminals" aria-label="Terminals" hidden={!shown}>
      {list.length === 0 ? (
        <Empty title="No terminal is open">
          <p>
            Open one on the page <a href={hashOf({ page: "hosts" })}>Hosts</a>.
          </p>
        </Empty>
      ) : (
        <TabList list={list} active={active} />
      )}
      {list.map((tab) => (
        <TerminalPanel key={tab.sessionId} tab={tab} shown={shown && tab === active} />
      ))}
    </section>
  );
}

function TabList({ list, active }: { readonly list: readonly Tab[]; readonly active: Tab | undefined }): JSX.Element {
  const turn = (event: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = list.findIndex((tab) => tab === active);
    const next = step === undefined ? undefined : list[(at + step + list.length) % list.length];
    if (next === undefined) return;
    event.preventDefault();
    go({ page: "terminals", sessionId: next.sessionId });
    document.getElementById(tabId(next))?.focus();
  };
  return (
    <div class="tab-row">
      <div class="tabs" role="tablist" aria-label="Open terminals" onKeyDown={turn}>
        {list.map((tab) => (
          <TabButton key={tab.sessionId} tab={tab} selected={tab === active} />
        ))}
      </div>
      <a href={hashOf({ page: "hosts" })} aria-label="Open another one" title="Open another one">
        +
      </a>
    </div>
  );
}

function TabButton({ tab, selected }: { readonly tab: Tab; readonly selected: boolean }): JSX.Element {
  const title = useWatched(tab.title);
  const rings = useWatched(tab.rings);
  const left = useWatched(tab.left);
  const { tone, word } = statusOf(useWatched(tab.state));
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (left > 0) button.current?.focus();
  }, [left]);
  return (
    <button
      type="button"
      role="tab"
      id={tabId(tab)}
      ref={button}
      class={rings ? "rings" : ""}
      aria-selected={selected}
      aria-controls={`panel-${tab.sessionId}`}
      tabIndex={selected ? 0 : -1}
      title={title}
      onClick={() => {
        go({ page: "terminals", sessionId: tab.sessionId });
        tab.screen.focus();
      }}
    >
      {tone !== "good" && <span class={`dot ${tone}`} title={word} />}
      <span class="host">{tab.place.hostName}</span>
      <span class="title">{title || tab.place.sessionUser}</span>
    </button>
  );
}

export function tabId(tab: Tab): string {
  return `tab-${tab.sessionId}`;
}
