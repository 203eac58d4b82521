/** The application: who is here, where they are, and what is said aloud. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useErrorBoundary, useRef, useState } from "preact/hooks";

import type { Account } from "../device/account.ts";
import { Refusal, Rest } from "../device/rest.ts";
import type { Identity, Vault } from "../device/vault.ts";
import { Tabs } from "../terminal/tabs.ts";
import { Watched, useWatched } from "../watched.ts";
import { AccountPage } from "./account.tsx";
import { Happenings } from "./happenings.ts";
import { type Here, HereContext } from "./here.ts";
import { HostsPage } from "./hosts.tsx";
import { OperatePages } from "./operate.tsx";
import { Empty } from "./parts.tsx";
import { hashOf } from "./route.ts";
import type { Me, PasskeyRow } from "./rows.ts";
import { SignIn } from "./sign_in.tsx";
import { TerminalsPage } from "./terminals.tsx";
import { TopBar } from "./top_bar.tsx";
import { route } from "./whereabouts.ts";
import { wordsOf } from "./words.ts";

/** Milliseconds until the relay is asked again whether it is there. */
const RETRY_MS = 2000;

interface AppProps {
  readonly account: Account;
  readonly vault: Vault;
  readonly identity: Identity | null;
  readonly invite: string | null;
}

export function App({ account, vault, identity, invite }: AppProps): JSX.Element {
  const [offered, setOffered] = useState(invite);
  const [who, setWho] = useState(invite === null ? identity : null);
  const [reason, setReason] = useState<string | null>(null);
  const [here, setHere] = useState<Here | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const spoken = useRef(new Watched("")).current;

  useEffect(() => {
    if (who === null) return undefined;
    const rest = new Rest(account.relay, who);
    const leave = (why: string | null): void => {
      setReason(why);
      setWho(null);
    };
    let made: Here | null = null;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let wanted = true;

    const begin = async (): Promise<void> => {
      try {
        const me = await rest.call<Me>("GET", "/me");
        if (!wanted) return;
        made = {
          account,
          vault,
          identity: who,
          rest,
          me,
          tabs: new Tabs({ rest, vault, identity: who }),
          happenings: new Happenings(rest, (refusal) => leave(endOf(refusal))),
          passkeys: new Watched<number | null>(null),
          say: (text) => spoken.set(text),
          signOut: async () => {
            made?.tabs.forget();
            await account.signOut(rest).finally(() => leave(null));
          },
        };
        void countPasskeys(made);
        setTrouble(null);
        setHere(made);
      } catch (error) {
        if (!wanted) return;
        if (error instanceof Refusal && error.status === 401) return leave(endOf(error));
        setTrouble(wordsOf(error));
        const asked = error instanceof Refusal ? error.retryAfter * 1000 : 0;
        timer = setTimeout(() => void begin(), Math.max(asked, RETRY_MS));
      }
    };
    void begin();
    return () => {
      wanted = false;
      clearTimeout(timer);
      made?.happenings.stop();
      made?.tabs.dispose();
      setHere(null);
    };
  }, [who]);

  if (who === null) {
    const signedIn = (person: Identity): void => {
      setOffered(null);
      setWho(person);
    };
    return <SignIn account={account} invite={offered} known={offered === null ? null : identity} reason={reason} signedIn={signedIn} />;
  }
  if (here === null) {
    return (
      <main class="sign-in">
        <h1 class="brand">bothy</h1>
        <p role="status">{trouble === null ? "Signing in..." : `${trouble} Trying again...`}</p>
      </main>
    );
  }
  return (
    <HereContext.Provider value={here}>
      <Pages spoken={spoken} />
    </HereContext.Provider>
  );
}

function Pages({ spoken }: { readonly spoken: Watched<string> }): JSX.Element {
  const at = useWatched(route);
  const words = useWatched(spoken);
  useEffect(() => {
    document.title = `${at.page.charAt(0).toUpperCase()}${at.page.slice(1)} - bothy`;
  }, [at.page]);
  return (
    <div class="app">
      <TopBar />
      <main id="main" tabIndex={-1} class={at.page === "terminals" ? "filled" : ""}>
        <Whole place={hashOf(at)}>
          {at.page === "hosts" && <HostsPage />}
          {at.page === "account" && <AccountPage />}
          {at.page === "operate" && <OperatePages part={at.part} />}
        </Whole>
        <TerminalsPage shown={at.page === "terminals"} sessionId={at.page === "terminals" ? at.sessionId : null} />
      </main>
      <div class="unseen" role="status" aria-live="polite" aria-label="Announcements">
        {words}
      </div>
    </div>
  );
}

/** A page that cannot be drawn, as with answers of another version of the relay, takes no terminal with it. */
function Whole({ place, children }: { readonly place: string; readonly children: ComponentChildren }): JSX.Element {
  const [broken, mend] = useErrorBoundary();
  useEffect(mend, [place]);
  if (broken === undefined) return <>{children}</>;
  return (
    <Empty title="This page does not understand the relay">
      <p>The relay may have another version than this page, which a reload brings. Your terminals come back after it.</p>
      <button type="button" onClick={() => location.reload()}>
        Reload
      </button>
    </Empty>
  );
}

/** Why this browser is signed in no more; what the relay says is meant for the command line. */
function endOf(refusal: Refusal): string {
  switch (refusal.code) {
    case "sign_in_required":
      return "Your login is over. Sign in again to go on where you were.";
    case "device_revoked":
      return "This device was revoked, and all that ran on it has ended.";
    default:
      return wordsOf(refusal);
  }
}

/** How many there are decides what the pages advise. Not knowing it is no trouble. */
async function countPasskeys({ rest, passkeys }: Here): Promise<void> {
  try {
    passkeys.set((await rest.call<{ passkeys: PasskeyRow[] }>("GET", "/passkeys")).passkeys.length);
  } catch (error) {
    console.warn("the passkeys could not be counted:", wordsOf(error));
  }
}
