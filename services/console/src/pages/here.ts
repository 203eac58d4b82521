/** What every page works with, once a person is signed in. */

import { createContext } from "preact";
import { useContext } from "preact/hooks";

import type { Account } from "../device/account.ts";
import type { Rest } from "../device/rest.ts";
import type { Identity, Vault } from "../device/vault.ts";
import type { Tabs } from "../terminal/tabs.ts";
import type { Happenings } from "./happenings.ts";
import type { Me } from "./rows.ts";
import type { Watched } from "../watched.ts";

export interface Here {
  readonly account: Account;
  readonly vault: Vault;
  readonly identity: Identity;
  readonly rest: Rest;
  readonly tabs: Tabs;
  readonly happenings: Happenings;
  readonly me: Me;
  /** How many passkeys the person has; null while that is not known. */
  readonly passkeys: Watched<number | null>;
  /** For the live region: what a screen reader says. */
  say(text: string): void;
  /** Give this device up. */
  signOut(): Promise<void>;
}

export const HereContext = createContext<Here | null>(null);

export function useHere(): Here {
  const here = useContext(HereContext);
  if (here === null) throw new Error("this page needs somebody who is signed in");
  return here;
}
