/** What stands in the way of a terminal, over its status line, with what the person can do about it. */

import type { ComponentChildren, JSX } from "preact";

import type { Status } from "../device/session_status.ts";
import type { Tab, TabState } from "../terminal/tab.ts";
import { HostKeyChanged } from "../terminal/trust.ts";
import { useWatched } from "../watched.ts";
import { KeyWarning } from "./key_warning.tsx";
import { Action } from "./parts.tsx";
import { bytes, wordsOf } from "./words.ts";

interface StateBarProps {
  readonly tab: Tab;
  /** The person wants to close a terminal whose session runs. */
  readonly asking: boolean;
  asked(): void;
  close(): void;
}

export function StateBar({ tab, asking, asked, close }: StateBarProps): JSX.Element | null {
  const state = useWatched(tab.state);
  if (asking) return <Closing tab={tab} asked={asked} close={close} />;
  if (state.kind === "attaching") return null;
  return state.kind === "refused" ? <Refused tab={tab} state={state} close={close} /> : <Running tab={tab} status={state.status} close={close} />;
}

function Bar({ children, tone }: { readonly children: ComponentChildren; readonly tone: "warn" | "bad" | "quiet" }): JSX.Element {
  return (
    <div class={`bar ${tone}`} role="group" aria-label="State of the terminal">
      {children}
    </div>
  );
}

function Closing({ tab, asked, close }: Omit<StateBarProps, "asking">): JSX.Element {
  return (
    <Bar tone="warn">
      <span>Close this terminal?</span>
      <Action
        kind="danger"
        label="End the session"
        run={async () => {
          await tab.end();
          close();
          return `The session on ${tab.place.hostName} has ended.`;
        }}
      />
      <button type="button" class="plain" onClick={close}>
        Leave it running
      </button>
      <button
        type="button"
        class="plain"
        onClick={() => {
          asked();
          tab.screen.focus();
        }}
      >
        Cancel
      </button>
    </Bar>
  );
}

interface RefusedProps {
  readonly tab: Tab;
  readonly state: Extract<TabState, { kind: "refused" }>;
  close(): void;
}

function Refused({ tab, state, close }: RefusedProps): JSX.Element {
  if (state.error instanceof HostKeyChanged) {
    return <KeyWarning changed={state.error} trusted={() => void tab.attach("when needed")} kept={close} />;
  }
  switch (state.why) {
    case "over":
      return (
        <Bar tone="quiet">
          <span>This session has ended.</span>
          <Close close={close} />
        </Bar>
      );
    case "unconfirmed":
      return (
        <Bar tone="warn">
          <span>Confirm with your passkey to come back to this session.</span>
          <Again tab={tab} label="Confirm" />
        </Bar>
      );
    case "away":
      return (
        <Bar tone="warn">
          <span>{sentence(wordsOf(state.error))} Trying again...</span>
          <Again tab={tab} label="Try now" />
        </Bar>
      );
    case "refused":
      return (
        <Bar tone="bad">
          <span>{wordsOf(state.error)}</span>
          <Again tab={tab} label="Try again" />
        </Bar>
      );
  }
}

function Running({ tab, status, close }: { readonly tab: Tab; readonly status: Status; close(): void }): JSX.Element | null {
  switch (status.kind) {
    case "up":
      return null;
    case "connecting":
      return status.cause === null && status.retryIn === null ? null : (
        <Bar tone="warn">
          <span>
            {sentence(status.cause ?? "connecting")}
            {status.retryIn !== null && <> Trying again in {Math.ceil(status.retryIn)} s.</>}
            {status.waiting > 0 && <> {bytes(status.waiting)} that you typed wait.</>}
          </span>
          {status.retryIn !== null && (
            <button type="button" class="plain" onClick={() => tab.tryNow()}>
              Try now
            </button>
          )}
          {status.waiting > 0 && (
            <button type="button" class="plain" onClick={() => tab.dropTyped()}>
              Drop what I typed
            </button>
          )}
        </Bar>
      );
    case "replaced":
      return (
        <Bar tone="warn">
          <span>This session is on another device now, or in another window.</span>
          <button type="button" class="primary" onClick={() => void tab.attach("first")}>
            Take it back
          </button>
          <Close close={close} />
        </Bar>
      );
    case "ended":
      return (
        <Bar tone="quiet">
          <span>{status.exitStatus === null ? sentence(status.text) : `The program ended with status ${status.exitStatus}.`}</span>
          {!status.over && <Again tab={tab} label="Attach again" />}
          <Close close={close} />
        </Bar>
      );
  }
}

function Again({ tab, label }: { readonly tab: Tab; readonly label: string }): JSX.Element {
  return (
    <button type="button" class="primary" onClick={() => void tab.attach("when needed")}>
      {label}
    </button>
  );
}

function Close({ close }: { close(): void }): JSX.Element {
  return (
    <button type="button" class="plain" onClick={close}>
      Close
    </button>
  );
}

function sentence(text: string): string {
  const words = wordsOf(text);
  const upper = words.charAt(0).toUpperCase() + words.slice(1);
  return /[.!?]$/.test(upper) ? upper : `${upper}.`;
}
