/** The browser's passkeys: what the relay asks for as WebAuthn options, and the answer as the relay wants it. */

import {
  type PublicKeyCredentialCreationOptionsJSON,
  type PublicKeyCredentialRequestOptionsJSON,
  startAuthentication,
  startRegistration,
} from "@simplewebauthn/browser";

import { type Bytes, fromBase64, toBase64 } from "../channel/index.ts";

export type CreationOptions = PublicKeyCredentialCreationOptionsJSON;
export type RequestOptions = PublicKeyCredentialRequestOptionsJSON;

/** A new passkey, as `POST /passkeys` takes it. Base64. */
export interface Attestation {
  readonly id: string;
  readonly client_data: string;
  readonly attestation_object: string;
}

/** An answer of a passkey, as logins and confirmations take it. Base64. */
export interface Assertion {
  readonly id: string;
  readonly client_data: string;
  readonly authenticator_data: string;
  readonly signature: string;
  readonly user_handle: string | null;
}

/** Ask the person to make a passkey. Throws a DOMException when they do not, or the browser cannot. */
export async function createPasskey(options: CreationOptions): Promise<Attestation> {
  const { id, response } = await startRegistration({ optionsJSON: options });
  return {
    id: plain(id),
    client_data: plain(response.clientDataJSON),
    attestation_object: plain(response.attestationObject),
  };
}

/** Ask the person for one of their passkeys. Throws a DOMException when they give none. */
export async function usePasskey(options: RequestOptions): Promise<Assertion> {
  const { id, response } = await startAuthentication({ optionsJSON: options });
  return {
    id: plain(id),
    client_data: plain(response.clientDataJSON),
    authenticator_data: plain(response.authenticatorData),
    signature: plain(response.signature),
    user_handle: response.userHandle ? plain(response.userHandle) : null,
  };
}

/** The bytes of base64url, as browsers write it. */
export function fromBase64Url(text: string): Bytes {
  const padded = text.replaceAll("-", "+").replaceAll("_", "/").padEnd(Math.ceil(text.length / 4) * 4, "=");
  const bytes = fromBase64(padded);
  if (bytes === null) throw new RangeError("this is no base64url");
  return bytes;
}

function plain(base64url: string): string {
  return toBase64(fromBase64Url(base64url));
}
