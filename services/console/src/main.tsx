/** The console's entry: one page that is a device, if this browser can be one. */

import { render } from "preact";

import { canonicalOrigin } from "./channel/index.ts";
import { Account } from "./device/account.ts";
import { Vault } from "./device/vault.ts";
import { App } from "./pages/app.tsx";
import { inviteOf } from "./pages/route.ts";
import { missing } from "./pages/support.ts";
import { wordsOf } from "./pages/words.ts";
import { obeyStylePolicy } from "./terminal/style_policy.ts";

const root = document.getElementById("console");
if (root === null) throw new Error("this is not the console's page");

function refuse(text: string): void {
  render(
    <main class="sign-in">
      <h1 class="brand">bothy</h1>
      <p role="alert">{text}</p>
    </main>,
    root!,
  );
}

async function begin(): Promise<void> {
  const lacks = await missing();
  if (lacks !== null) return refuse(lacks);
  const invite = inviteOf(location.hash);
  // A code is good once and stays in no history.
  if (invite !== null) history.replaceState(null, "", location.pathname);
  const vault = await Vault.open();
  const identity = (await vault.identity()) ?? null;
  const account = new Account(canonicalOrigin(location.href), vault);
  render(<App account={account} vault={vault} identity={identity} invite={invite} />, root!);
}

// A link that is opened where the page is already changes only what is behind the `#`.
addEventListener("hashchange", () => inviteOf(location.hash) !== null && location.reload());
obeyStylePolicy();
begin().catch((error: unknown) => refuse(`This browser keeps nothing for this page: ${wordsOf(error)}`));
