/** The person's own things: devices, passkeys, letting a device in, and leaving. */

import type { JSX } from "preact";

import { Approve } from "./approve.tsx";
import { Devices } from "./devices.tsx";
import { useHere } from "./here.ts";
import { Action } from "./parts.tsx";
import { Passkeys } from "./passkeys.tsx";

export function AccountPage(): JSX.Element {
  const { me, signOut } = useHere();
  return (
    <>
      <div class="card-head">
        <h1>{me.person_name}</h1>
        <span class="quiet">
          on {me.device_name}
          {me.is_operator && ", operator"}
        </span>
        <span class="spring" />
        <Action label="Sign out" question="Give this device up? Its keys are deleted and its terminals end." run={signOut} />
      </div>
      <Devices />
      <Approve />
      <Passkeys />
    </>
  );
}
