/** An owner says that the key of a host that was just paired is that of their machine. */

import type { JSX } from "preact";

import { confirm } from "../device/account.ts";
import { useHere } from "./here.ts";
import { Action } from "./parts.tsx";
import type { HostRow } from "./rows.ts";

export function ConfirmKey({ host }: { readonly host: HostRow }): JSX.Element {
  const { rest } = useHere();
  const confirmKey = async (): Promise<string> => {
    const step_up_id = await confirm(rest, { purpose: "manage_host", host_id: host.host_id });
    await rest.call("POST", `/hosts/${host.host_id}/confirm`, { fingerprint: host.fingerprint, step_up_id });
    return `${host.name} is confirmed.`;
  };
  return (
    <Action
      kind="primary"
      label="Confirm its key"
      name={`Confirm the key of ${host.name}`}
      question={`Does the machine show ${host.fingerprint}?`}
      run={confirmKey}
    />
  );
}
