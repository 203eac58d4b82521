/** A pairing code with what to do with it. */

import type { JSX } from "preact";

import { confirm } from "../device/account.ts";
import type { Rest } from "../device/rest.ts";
import { Copyable } from "./parts.tsx";
import type { CodeMade } from "./rows.ts";
import { lasting } from "./words.ts";

/** A new code for a host, which the person confirms. */
export async function codeFor(rest: Rest, hostId: string): Promise<CodeMade> {
  const step_up_id = await confirm(rest, { purpose: "manage_host", host_id: hostId });
  return rest.make<CodeMade>(`/hosts/${hostId}/pairing-codes`, { step_up_id });
}

export function Pairing({ host, made }: { readonly host: string; readonly made: CodeMade }): JSX.Element {
  return (
    <div class="note" role="status">
      <p>
        On the machine of <strong>{host}</strong>, within {lasting(made.expires_in_s)}:
      </p>
      <ol>
        <li>
          <Copyable name="the command" text={`sudo -u bothy bothy-host pair ${location.origin}`} />
        </li>
        <li>
          It asks for the code: <Copyable name="the code" text={made.code} />
        </li>
        <li>
          <Copyable name="the command" text="sudo systemctl enable --now bothy-host" />
        </li>
      </ol>
    </div>
  );
}
