/** A host shows another key than the one that is remembered: both are shown, and trusting the new one is a deliberate act. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { type HostKeyChanged, trust } from "../terminal/trust.ts";
import { useHere } from "./here.ts";
import { Action } from "./parts.tsx";

interface KeyWarningProps {
  readonly changed: HostKeyChanged;
  /** The person trusts the new key: try again. */
  trusted(): void;
  /** They do not, so there is no way to this host now. */
  kept(): void;
}

export function KeyWarning({ changed, trusted, kept }: KeyWarningProps): JSX.Element {
  const { vault } = useHere();
  const [compared, setCompared] = useState(false);
  const { host, remembered, named } = changed;
  return (
    <div class="warning" role="alert">
      <h3>The key of {host.hostName} has changed</h3>
      <p>
        Nothing was sent to it. Either the machine was paired again, or somebody puts another machine in its place. Ask who runs
        it: <code>bothy-host doctor</code> on the machine shows its fingerprint.
      </p>
      <dl class="facts">
        <dt>Remembered</dt>
        <dd>
          <code>{remembered}</code>
        </dd>
        <dt>Shown now</dt>
        <dd>
          <code>{named}</code>
        </dd>
      </dl>
      <label class="check">
        <input type="checkbox" checked={compared} onChange={(event) => setCompared(event.currentTarget.checked)} />
        <span>I have compared the new fingerprint with the one on the machine</span>
      </label>
      <p class="row">
        <Action
          kind="danger"
          label="Trust the new key"
          disabled={!compared}
          run={async () => {
            await trust(vault, host);
            trusted();
            return `The new key of ${host.hostName} is trusted.`;
          }}
        />
        <button type="button" class="plain" onClick={kept}>
          Keep the old one
        </button>
      </p>
    </div>
  );
}
