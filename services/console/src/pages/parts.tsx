/** The small things that all pages are made of. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import type { Loaded } from "./happenings.ts";
import { useHere } from "./here.ts";
import { wordsOf } from "./words.ts";

interface ActionProps {
  readonly label: string;
  /** For a screen reader, where the label says too little by itself. */
  readonly name?: string;
  readonly kind?: "primary" | "danger" | "plain";
  /** Asked first, in place. */
  readonly question?: string;
  readonly disabled?: boolean;
  /** What it did, for the live region; what it throws is shown beside the button. */
  run(): Promise<string | void>;
}

/** A button that does something at the relay: it asks first where that is wanted, is busy meanwhile, and says what went wrong. */
export function Action({ label, name, kind = "plain", question, disabled, run }: ActionProps): JSX.Element {
  const here = useHere();
  const [state, setState] = useState<"idle" | "asking" | "cancelled" | "busy">("idle");
  const [error, setError] = useState<unknown>(null);
  const alive = useAlive();

  const act = async (): Promise<void> => {
    setState("busy");
    setError(null);
    try {
      const done = await run();
      if (done) here.say(done);
    } catch (failure) {
      if (alive.current) setError(failure);
    } finally {
      if (alive.current) setState("idle");
    }
  };

  if (state === "asking") {
    return (
      <span class="asking" role="group" aria-label={question ?? label}>
        <span>{question}</span>
        <button type="button" class={kind} ref={focusOnce} onClick={() => void act()}>
          {label}
        </button>
        <button type="button" class="plain" onClick={() => setState("cancelled")}>
          Cancel
        </button>
      </span>
    );
  }
  return (
    <span class="action">
      <button
        type="button"
        class={kind}
        ref={state === "cancelled" ? focusOnce : null}
        aria-label={name}
        aria-busy={state === "busy"}
        disabled={disabled || state === "busy"}
        onClick={() => (question === undefined ? void act() : setState("asking"))}
      >
        {label}
      </button>
      {error !== null && <Failure error={error} />}
    </span>
  );
}

/** An error, where it happened. */
export function Failure({ error }: { readonly error: unknown }): JSX.Element {
  return (
    <span class="failure" role="alert">
      {wordsOf(error)}
    </span>
  );
}

/** A list from the relay: before it came, when it could not come, and as it is. */
export function Listed<T>({ loaded, children }: { readonly loaded: Loaded<T>; children(value: T): ComponentChildren }): JSX.Element {
  return (
    <>
      {loaded.error !== null && (
        <p class="failure-line">
          <Failure error={loaded.error} />{" "}
          <button type="button" class="plain" onClick={() => loaded.reload()}>
            Try again
          </button>
        </p>
      )}
      {loaded.value === null ? loaded.error === null && <p class="quiet">Loading...</p> : children(loaded.value)}
    </>
  );
}

/** A state in a word and a colour; never in the colour alone. */
export function Badge({ tone, children }: { readonly tone: "good" | "warn" | "bad" | "quiet"; readonly children: ComponentChildren }): JSX.Element {
  return <span class={`badge ${tone}`}>{children}</span>;
}

/** Text that a person carries elsewhere: codes, fingerprints, commands. */
export function Copyable({ text, name }: { readonly text: string; readonly name: string }): JSX.Element {
  const [said, setSaid] = useState("Copy");
  const copy = (): void => {
    navigator.clipboard.writeText(text).then(
      () => setSaid("Copied"),
      () => setSaid("Not copied: select it"),
    );
  };
  return (
    <span class="copyable">
      <code>{text}</code>
      <button type="button" class="plain small" aria-label={`Copy ${name}`} onClick={copy} onBlur={() => setSaid("Copy")}>
        {said}
      </button>
    </span>
  );
}

/** Nothing is here yet, and what to do about it. */
export function Empty({ title, children }: { readonly title: string; readonly children: ComponentChildren }): JSX.Element {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** The instant, anew every `seconds`, so that what is `3 s ago` grows older on the page. */
export function useNow(seconds = 10): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), seconds * 1000);
    return () => clearInterval(timer);
  }, [seconds]);
  return now;
}

/** Whether the component is still on the page; for what comes late. */
export function useAlive(): { current: boolean } {
  const alive = useRef(true);
  useEffect(() => {
    alive.current = true;
    return () => {
      alive.current = false;
    };
  }, []);
  return alive;
}

/** As a `ref`: what has just come gets the keyboard. */
export function focusOnce(element: HTMLElement | null): void {
  element?.focus();
}
