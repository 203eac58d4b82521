/** A new host: a name, then the code and the commands for its machine. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { confirm } from "../device/account.ts";
import { useHere } from "./here.ts";
import { Action } from "./parts.tsx";
import { Pairing, codeFor } from "./pairing.tsx";
import type { CodeMade, HostRow } from "./rows.ts";

export function AddHost(): JSX.Element {
  const { rest } = useHere();
  const [name, setName] = useState("");
  const [made, setMade] = useState<{ host: HostRow; code: CodeMade } | null>(null);

  const add = async (): Promise<string> => {
    const step_up_id = await confirm(rest, { purpose: "manage_relay" });
    const host = await rest.make<HostRow>("/hosts", { name: name.trim(), step_up_id });
    setMade({ host, code: await codeFor(rest, host.host_id) });
    setName("");
    return `${host.name} is added.`;
  };

  return (
    <div class="add">
      <div class="row">
        <label class="field">
          <span>Add a host</span>
          <input value={name} maxLength={64} placeholder="lab-1" onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        <Action label="Add" name="Add the host" disabled={name.trim() === ""} run={add} />
      </div>
      {made !== null && <Pairing host={made.host.name} made={made.code} />}
    </div>
  );
}
