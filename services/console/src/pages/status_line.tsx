/** The line under a terminal: its state, how long a key takes, by which way, what waits, and what can be done. */

import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import type { Tab } from "../terminal/tab.ts";
import { Watched, useWatched } from "../watched.ts";
import { useHere } from "./here.ts";
import { roundTrip, statusOf } from "./status_words.ts";
import { bytes } from "./words.ts";

const ALOUD = "bothy.read-aloud";
const aloud = new Watched(localStorage.getItem(ALOUD) === "on");

interface StatusLineProps {
  readonly tab: Tab;
  close(): void;
  /** A session that runs is not left without a word. */
  ask(): void;
}

export function StatusLine({ tab, close, ask }: StatusLineProps): JSX.Element {
  const { say } = useHere();
  const state = useWatched(tab.state);
  const { tone, word } = statusOf(state);
  const status = state.kind === "running" ? state.status : null;
  const waiting = status !== null && "waiting" in status ? status.waiting : 0;
  const trip = status?.kind === "up" ? roundTrip(status.roundTrip) : null;
  const over = (status?.kind === "ended" && status.over) || (state.kind === "refused" && state.why === "over");
  const told = status?.kind === "ended" ? `${word}, ${status.text}` : word;
  useEffect(() => say(`${tab.place.hostName}: ${told}`), [told]);

  return (
    <div class="status-line" role="group" aria-label="Status of the terminal">
      <span class={`dot ${tone}`} />
      <span class="state">{word}</span>
      <span>
        {tab.place.sessionUser}@{tab.place.hostName}
      </span>
      {trip !== null && <span title="How long the host takes to answer">{trip}</span>}
      {status?.kind === "up" && (
        <span class="way" title="Encrypted from this browser to the host; the relay cannot read it">
          via {location.host}, encrypted
        </span>
      )}
      {waiting > 0 && <span class="waiting">{bytes(waiting)} waiting</span>}
      <span class="spring" />
      <span class="tools">
        <button type="button" class="plain small" title="Ctrl+Shift+F" onClick={() => tab.searching.set(true)}>
          Search
        </button>
        <ReadAloud tab={tab} />
        <button type="button" class="plain small" aria-label="Close the terminal" title="Ctrl+Shift+E leaves it by keyboard" onClick={over ? close : ask}>
          Close
        </button>
      </span>
    </div>
  );
}

/** Whether a screen reader gets the terminal's rows; one choice for all terminals of this browser. */
function ReadAloud({ tab }: { readonly tab: Tab }): JSX.Element {
  const on = useWatched(aloud);
  useEffect(() => tab.screen.readAloud(on), [tab, on]);
  const turn = (): void => {
    localStorage.setItem(ALOUD, on ? "off" : "on");
    aloud.set(!on);
  };
  return (
    <button type="button" class="plain small" aria-pressed={on} onClick={turn}>
      Screen reader
    </button>
  );
}
