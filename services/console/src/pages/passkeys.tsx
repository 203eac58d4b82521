/** The person's passkeys: a word of advice while there is none, and the list. */

import type { JSX } from "preact";

import { confirm } from "../device/account.ts";
import { useWatched } from "../watched.ts";
import { useLoaded } from "./happenings.ts";
import { useHere } from "./here.ts";
import { Action, Listed, useNow } from "./parts.tsx";
import type { PasskeyRow } from "./rows.ts";
import { ago } from "./words.ts";

/** Nothing can be opened without one, so it is said where one would open something. */
export function PasskeyAdvice(): JSX.Element | null {
  const count = useWatched(useHere().passkeys);
  if (count !== 0) return null;
  return (
    <div class="note row">
      <span>Terminals are opened with a passkey, and you have none yet.</span>
      <AddPasskey kind="primary" label="Create a passkey" />
    </div>
  );
}

export function Passkeys(): JSX.Element {
  const { rest, passkeys } = useHere();
  const now = useNow();
  const count = useWatched(passkeys);
  const loaded = useLoaded<readonly PasskeyRow[]>(
    async () => {
      const rows = (await rest.call<{ passkeys: PasskeyRow[] }>("GET", "/passkeys")).passkeys;
      passkeys.set(rows.length);
      return rows;
    },
    ["rights.changed"],
    String(count),
  );
  const remove = async (id: string, name: string): Promise<string> => {
    const step_up_id = await confirm(rest, { purpose: "manage_account" });
    const left = await rest.call<{ passkeys: PasskeyRow[] }>("POST", `/passkeys/${id}/remove`, { step_up_id });
    passkeys.set(left.passkeys.length);
    return `The passkey ${name} is removed.`;
  };
  return (
    <section aria-labelledby="passkeys-title">
      <h2 id="passkeys-title">Passkeys</h2>
      <Listed loaded={loaded}>
        {(rows) => (
          <ul class="lines boxed">
            {rows.map((row) => (
              <li key={row.passkey_id}>
                <strong>{row.name}</strong>
                <span class="quiet">
                  {row.backed_up ? "synchronised, " : ""}added {ago(row.created_at, now)}, used {ago(row.last_used_at, now)}
                </span>
                <span class="spring" />
                <Action
                  label="Remove"
                  name={`Remove the passkey ${row.name}`}
                  question={rows.length === 1 ? "It is your last one: without it nothing opens here. Remove it?" : "Remove it?"}
                  kind="plain"
                  run={() => remove(row.passkey_id, row.name)}
                />
              </li>
            ))}
            {rows.length === 0 && <li class="quiet">None yet.</li>}
          </ul>
        )}
      </Listed>
      <AddPasskey label="Add a passkey" />
    </section>
  );
}

/** The first one of a browser that came by an invite needs no confirmation; what could confirm it does not exist yet. */
function AddPasskey({ label, kind = "plain" }: { readonly label: string; readonly kind?: "plain" | "primary" }): JSX.Element {
  const { account, rest, identity, passkeys } = useHere();
  const add = async (): Promise<string> => {
    const count = passkeys.value ?? 0;
    await account.addPasskey(rest, identity, identity.deviceName, count > 0);
    passkeys.set(count + 1);
    return "The passkey is added.";
  };
  return <Action kind={kind} label={label} run={add} />;
}
