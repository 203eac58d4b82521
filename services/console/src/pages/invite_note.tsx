/** An invite, as it is handed to whom it is for. It is shown once. */

import type { JSX } from "preact";

import { Copyable } from "./parts.tsx";
import type { InviteMade } from "./rows.ts";
import { lasting } from "./words.ts";

export function InviteNote({ made }: { readonly made: InviteMade }): JSX.Element {
  if (made.invite === null) return <p class="note">The invite was shown already. Make another one.</p>;
  return (
    <div class="note" role="status">
      <p>
        For <strong>{made.name}</strong>
        {made.expires_in_s !== null && <>, good once within {lasting(made.expires_in_s)}</>}. Whoever has it signs in as them, so
        give it to nobody else. It is shown only now.
      </p>
      <dl class="facts">
        <dt>In a browser</dt>
        <dd>
          <Copyable name="the link" text={`${location.origin}/#invite=${made.invite}`} />
        </dd>
        <dt>On a command line</dt>
        <dd>
          <Copyable name="the command" text={`bothy login ${location.origin}`} />
        </dd>
        <dt>which asks for</dt>
        <dd>
          <Copyable name="the code" text={made.invite} />
        </dd>
      </dl>
    </div>
  );
}
