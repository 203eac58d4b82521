/** The first page: by invite, which makes this browser a device and a passkey at once, or by a passkey. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import type { Account } from "../device/account.ts";
import { Rest } from "../device/rest.ts";
import type { Identity } from "../device/vault.ts";
import { focusOnce } from "./parts.tsx";
import { browserName } from "./support.ts";
import { wordsOf } from "./words.ts";

interface SignInProps {
  readonly account: Account;
  /** From the link that led here. */
  readonly invite: string | null;
  /** Who this browser is already, and would not be any more with the invite. */
  readonly known: Identity | null;
  /** Why the person has to sign in again. */
  readonly reason: string | null;
  signedIn(identity: Identity): void;
}

export function SignIn({ account, invite, known, reason, signedIn }: SignInProps): JSX.Element {
  const [staying, setStaying] = useState(known !== null);
  const [joined, setJoined] = useState<Identity | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const [name, setName] = useState(() => browserName(navigator.userAgent));

  const attempt = async (act: () => Promise<void>): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      await act();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  const addPasskey = async (identity: Identity): Promise<void> => {
    await account.addPasskey(new Rest(account.relay, identity), identity, identity.deviceName, false);
    signedIn(identity);
  };
  const redeem = (code: string): Promise<void> =>
    attempt(async () => {
      const identity = await account.redeem(code, name);
      setJoined(identity);
      await addPasskey(identity);
    });
  const usePasskey = (): Promise<void> => attempt(async () => signedIn(await account.signIn(name)));

  if (staying && known !== null) return <Already known={known} stay={() => signedIn(known)} leave={() => setStaying(false)} />;
  return (
    <main class="sign-in">
      <h1 class="brand">bothy</h1>
      {joined !== null ? (
        <PasskeyStep busy={busy} person={joined.personName} add={() => attempt(() => addPasskey(joined))} later={() => signedIn(joined)} />
      ) : (
        <>
          <p class="lead">{reason ?? "Terminals on your machines, encrypted from this browser to the host."}</p>
          {invite !== null ? (
            <form onSubmit={submitted(() => redeem(invite))}>
              <p>You are invited. This browser becomes a device of yours, and a passkey opens your terminals from now on.</p>
              <button class="primary wide" disabled={busy} ref={focusOnce}>
                Sign in
              </button>
            </form>
          ) : (
            <>
              <button type="button" class="primary wide" disabled={busy} onClick={() => void usePasskey()}>
                Sign in with a passkey
              </button>
              <p class="or">or, for the first time</p>
              <CodeForm busy={busy} redeem={redeem} />
            </>
          )}
          <label class="field quiet">
            <span>Name of this browser</span>
            <input value={name} maxLength={64} required onInput={(event) => setName(event.currentTarget.value)} />
          </label>
        </>
      )}
      {error !== null && (
        <p class="failure" role="alert">
          {wordsOf(error)}
        </p>
      )}
    </main>
  );
}

interface AlreadyProps {
  readonly known: Identity;
  stay(): void;
  leave(): void;
}

/** A link with an invite may be anybody's, so it does not make somebody else of a person by one click. */
function Already({ known, stay, leave }: AlreadyProps): JSX.Element {
  return (
    <main class="sign-in">
      <h1 class="brand">bothy</h1>
      <p class="lead">This browser is a device of {known.personName} already.</p>
      <p>The link that you opened holds an invite. With it this browser gives that up and becomes a device of whom the invite is for.</p>
      <button type="button" class="primary wide" ref={focusOnce} onClick={stay}>
        Stay {known.personName}
      </button>
      <button type="button" class="plain wide" onClick={leave}>
        Use the invite
      </button>
    </main>
  );
}

function CodeForm({ busy, redeem }: { readonly busy: boolean; redeem(code: string): Promise<void> }): JSX.Element {
  const [code, setCode] = useState("");
  return (
    <form class="row" onSubmit={submitted(() => redeem(code))}>
      <label class="field grow">
        <span>Invite code</span>
        <input
          value={code}
          required
          autocomplete="off"
          autocapitalize="characters"
          spellcheck={false}
          class="code"
          onInput={(event) => setCode(event.currentTarget.value)}
        />
      </label>
      <button disabled={busy}>Use the invite</button>
    </form>
  );
}

interface PasskeyStepProps {
  readonly busy: boolean;
  readonly person: string;
  add(): Promise<void>;
  later(): void;
}

/** The invite is spent, and no passkey came of it yet. */
function PasskeyStep({ busy, person, add, later }: PasskeyStepProps): JSX.Element {
  return (
    <>
      <p class="lead">Welcome, {person}. One thing is left: a passkey, with which you confirm each terminal that you open.</p>
      <button type="button" class="primary wide" disabled={busy} onClick={() => void add()}>
        Create a passkey
      </button>
      <button type="button" class="plain wide" disabled={busy} onClick={later}>
        Later
      </button>
    </>
  );
}

function submitted(act: () => Promise<void>): (event: Event) => void {
  return (event) => {
    event.preventDefault();
    void act();
  };
}
