/** How a browser becomes a device of somebody, proves that they are there, and stops being one. */

import { fromBase64, toBase64, utf8 } from "../channel/index.ts";
import { type Keys, newKeys, sha256, sign } from "./keys.ts";
import {
  type Assertion,
  type CreationOptions,
  type RequestOptions,
  createPasskey,
  fromBase64Url,
  usePasskey,
} from "./passkeys.ts";
import { Refusal, Rest } from "./rest.ts";
import type { Identity, Vault } from "./vault.ts";

/** What a person confirms; see docs/spec/protocol.md, Step-up. */
export type Act =
  | { purpose: "open" | "attach"; host_id: string; profile: string; session_user: string }
  | { purpose: "manage_host"; host_id: string }
  | { purpose: "manage_relay" }
  | { purpose: "manage_account" };

interface Joined {
  readonly device_id: string;
  readonly person_id: string;
  readonly person_name: string;
}

interface Asked<Options> {
  readonly options: Options;
}

/** The person who sits here: signs in, confirms, signs out. */
export class Account {
  readonly relay: string;
  readonly #vault: Vault;

  constructor(relay: string, vault: Vault) {
    this.relay = relay;
    this.#vault = vault;
  }

  /** Spend an invite: this browser becomes a device. Throws Refusal `invite_invalid`. */
  async redeem(code: string, deviceName: string): Promise<Identity> {
    const keys = await newKeys();
    const normal = normalCode(code);
    const hash = await sha256(utf8(normal));
    const fields = [hash, keys.signingPublic, keys.channel.publicKey, deviceName, "browser"];
    const signature = toBase64(await sign(keys, "invite-redeem", this.relay, ...fields));
    const body = { code: normal, kind: "browser", ...described(keys, deviceName, signature) };
    const joined = await new Rest(this.relay, null).send<Joined>("POST", "/auth/invites/redeem", body);
    return this.#keep(joined, keys, deviceName);
  }

  /** Sign in with a passkey: a device that was here is signed in again, else this browser becomes one. */
  async signIn(deviceName: string): Promise<Identity> {
    const known = await this.#vault.identity();
    const keys = known?.keys ?? (await newKeys());
    const name = known?.deviceName ?? deviceName;
    try {
      return await this.#signInWith(keys, name);
    } catch (error) {
      const elses = error instanceof Refusal && ["device_exists", "device_revoked"].includes(error.code);
      if (!known || !elses) throw error;
      return this.#signInWith(await newKeys(), deviceName);
    }
  }

  /** Add a passkey for the person who is signed in. A browser that just came by an invite needs no confirmation. */
  async addPasskey(rest: Rest, identity: Identity, name: string, confirmed: boolean): Promise<void> {
    const step_up_id = confirmed ? await confirm(rest, { purpose: "manage_account" }) : null;
    const { options } = await rest.call<Asked<CreationOptions>>("POST", "/passkeys/challenge", {});
    const credential = await createPasskey(options);
    const object = fromBase64(credential.attestation_object);
    if (object === null) throw new RangeError("this is no base64");
    const fields = [fromBase64Url(options.challenge), await sha256(object), name];
    const signature = toBase64(await sign(identity.keys, "passkey-add", this.relay, ...fields));
    const proof = { name, credential, signature };
    await rest.make("/passkeys", step_up_id === null ? proof : { ...proof, step_up_id });
  }

  /** Give this device up, at the relay and here. It is forgotten here also when the relay cannot be reached. */
  async signOut(rest: Rest): Promise<void> {
    try {
      await rest.call("POST", "/auth/logout", {});
    } finally {
      await this.#vault.forget();
    }
  }

  async #signInWith(keys: Keys, deviceName: string): Promise<Identity> {
    const rest = new Rest(this.relay, null);
    const { options } = await rest.send<Asked<RequestOptions>>("POST", "/auth/passkeys/challenge", {});
    const credential = await usePasskey(options);
    const fields = [fromBase64Url(options.challenge), keys.signingPublic, keys.channel.publicKey, deviceName];
    const signature = toBase64(await sign(keys, "passkey-login", this.relay, ...fields));
    const body = { credential, device: described(keys, deviceName, signature) };
    return this.#keep(await rest.send<Joined>("POST", "/auth/passkeys/login", body), keys, deviceName);
  }

  async #keep(joined: Joined, keys: Keys, deviceName: string): Promise<Identity> {
    const identity: Identity = {
      deviceId: joined.device_id,
      deviceName,
      personId: joined.person_id,
      personName: joined.person_name,
      keys,
    };
    await this.#vault.keep(identity);
    return identity;
  }
}

/** Ask the person to confirm one act with a passkey; the id of the step-up, which counts once. */
export async function confirm(rest: Rest, act: Act): Promise<string> {
  const asked = await rest.call<{ challenge: string; passkey?: RequestOptions }>(
    "POST",
    "/step-up/challenges",
    act,
  );
  if (asked.passkey === undefined) throw new Refusal(401, "passkey_required", "Add a passkey first.", 0);
  const credential: Assertion = await usePasskey(asked.passkey);
  const proof = { challenge: asked.challenge, credential };
  return (await rest.call<{ step_up_id: string }>("POST", "/step-up", proof)).step_up_id;
}

/** What a person typed without case, dashes and look-alikes, as `bothy_wire/codes.py` reads it. */
export function normalCode(typed: string): string {
  const upper = typed.trim().toUpperCase();
  return upper.replaceAll(/[- ]/g, "").replaceAll(/[IL]/g, "1").replaceAll("O", "0");
}

function described(keys: Keys, name: string, signature: string): object {
  const signing_key = toBase64(keys.signingPublic);
  return { name, signing_key, channel_key: toBase64(keys.channel.publicKey), signature };
}
