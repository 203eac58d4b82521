/** The person's devices, and an invite for another one. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { confirm } from "../device/account.ts";
import { useLoaded } from "./happenings.ts";
import { useHere } from "./here.ts";
import { InviteNote } from "./invite_note.tsx";
import { Action, Listed, useNow } from "./parts.tsx";
import type { DeviceRow, InviteMade } from "./rows.ts";
import { ago } from "./words.ts";

const WAYS = { approval: "let in by a device", invite: "by an invite", passkey: "by a passkey" } as const;

export function Devices(): JSX.Element {
  const { rest } = useHere();
  const [invite, setInvite] = useState<InviteMade | null>(null);
  const loaded = useLoaded<readonly DeviceRow[]>(
    async () => (await rest.call<{ devices: DeviceRow[] }>("GET", "/devices")).devices.filter((each) => each.revoked_at === null),
    ["rights.changed"],
  );
  const makeInvite = async (): Promise<string> => {
    const step_up_id = await confirm(rest, { purpose: "manage_account" });
    setInvite(await rest.make<InviteMade>("/devices/invites", { step_up_id }));
    return "The invite is made.";
  };
  return (
    <section aria-labelledby="devices-title">
      <h2 id="devices-title">Devices</h2>
      <Listed loaded={loaded}>
        {(devices) => (
          <ul class="lines boxed">
            {devices.map((device) => (
              <DeviceLine key={device.device_id} device={device} revoked={loaded.reload} />
            ))}
          </ul>
        )}
      </Listed>
      <Action label="Invite another device" run={makeInvite} />
      {invite !== null && <InviteNote made={invite} />}
    </section>
  );
}

function DeviceLine({ device, revoked }: { readonly device: DeviceRow; revoked(): void }): JSX.Element {
  const { rest, me } = useHere();
  const now = useNow();
  const revoke = async (): Promise<string> => {
    const step_up_id = await confirm(rest, { purpose: "manage_account" });
    await rest.call("POST", `/devices/${device.device_id}/revoke`, { step_up_id });
    revoked();
    return `${device.name} is revoked.`;
  };
  return (
    <li>
      <strong>{device.name}</strong>
      {device.device_id === me.device_id && <span class="badge good">this browser</span>}
      <span class="quiet">
        {device.kind === "cli" ? "bothy, " : ""}
        {WAYS[device.added_by]} {ago(device.created_at, now)}, used {ago(device.last_used_at, now)}
      </span>
      <code class="fingerprint" title="Fingerprint of its key">
        {device.fingerprint}
      </code>
      <span class="spring" />
      {device.device_id !== me.device_id && (
        <Action
          label="Revoke"
          name={`Revoke ${device.name}`}
          question="End all that runs on it, at once and for good?"
          kind="danger"
          run={revoke}
        />
      )}
    </li>
  );
}
