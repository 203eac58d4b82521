/** Letting a device in that shows a short code (`bothy login --approve`): its fingerprint is compared before. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { confirm } from "../device/account.ts";
import { useHere } from "./here.ts";
import { Action } from "./parts.tsx";
import type { WaitingDevice } from "./rows.ts";

export function Approve(): JSX.Element {
  const { rest } = useHere();
  const [code, setCode] = useState("");
  const [waiting, setWaiting] = useState<WaitingDevice | null>(null);
  const [compared, setCompared] = useState(false);

  const find = async (): Promise<void> => {
    setCompared(false);
    setWaiting(await rest.call<WaitingDevice>("POST", "/device-logins/find", { user_code: code.trim() }));
  };
  const done = (): void => {
    setWaiting(null);
    setCode("");
  };
  const approve = async (device: WaitingDevice): Promise<string> => {
    const step_up_id = await confirm(rest, { purpose: "manage_account" });
    await rest.call("POST", `/device-logins/${device.device_login_id}/approve`, { step_up_id });
    done();
    return `${device.name} is a device of yours now.`;
  };
  const deny = async (device: WaitingDevice): Promise<string> => {
    await rest.call("POST", `/device-logins/${device.device_login_id}/deny`, {});
    done();
    return `${device.name} is not let in.`;
  };

  return (
    <section aria-labelledby="approve-title">
      <h2 id="approve-title">Let a device in</h2>
      <p class="quiet">
        On the device: <code>bothy login {location.origin} --approve</code>. It shows a code.
      </p>
      {waiting === null ? (
        <div class="row">
          <label class="field">
            <span>Code of the device</span>
            <input
              class="code"
              value={code}
              autocomplete="off"
              spellcheck={false}
              onInput={(event) => setCode(event.currentTarget.value)}
            />
          </label>
          <Action label="Find" name="Find the device" disabled={code.trim() === ""} run={find} />
        </div>
      ) : (
        <div class="note" role="group" aria-label="A device that waits">
          <p>
            <strong>{waiting.name}</strong> asks to become a device of yours. It shows this fingerprint:
          </p>
          <p>
            <code class="fingerprint">{waiting.fingerprint}</code>
          </p>
          <label class="check">
            <input type="checkbox" checked={compared} onChange={(event) => setCompared(event.currentTarget.checked)} />
            <span>The device in front of me shows the same one</span>
          </label>
          <p class="row">
            <Action kind="primary" label="Let it in" disabled={!compared} run={() => approve(waiting)} />
            <Action kind="danger" label="Deny" name="Deny the device" run={() => deny(waiting)} />
          </p>
        </div>
      )}
    </section>
  );
}
