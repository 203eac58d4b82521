/**
 * `Noise_IK_25519_AESGCM_SHA256` of the Noise Protocol Framework, revision 34: the end that writes message 1.
 *
 *     <- s
 *     ...
 *     -> e, es, s, ss      message 1: the device knows the host's static key
 *     <- e, ee, se         message 2
 *
 * Section numbers below are those of the revision. Whatever does not open throws ChannelError and leaves the state as it was;
 * a call in the wrong order throws LocalError. WebCrypto is asynchronous: what a call takes, it takes before it waits.
 */

import { type Bytes, NOTHING, concat, utf8 } from "./bytes.ts";
import { ChannelError, LocalError } from "./errors.ts";
import { LIMITS } from "./wire.ts";

/** Section 3: most bytes of any Noise message. */
export const MESSAGE_BYTES = 65535;
export const TAG_BYTES = 16;

/** An X25519 key. The private half never leaves WebCrypto. */
export interface KeyPair {
  readonly privateKey: CryptoKey;
  /** The raw public key. */
  readonly publicKey: Bytes;
}

/** A fresh X25519 key that nobody can export. */
export async function newChannelKey(): Promise<KeyPair> {
  const pair = (await subtle.generateKey("X25519", false, ["deriveBits"])) as CryptoKeyPair;
  return { privateKey: pair.privateKey, publicKey: new Uint8Array(await subtle.exportKey("raw", pair.publicKey)) };
}

/** One direction's key and nonce (section 5.1). */
export class CipherState {
  /** The nonce of the next message. */
  nonce = 0;
  #key: Promise<CryptoKey>;

  constructor(key: Bytes) {
    this.#key = importKey(key);
  }

  /** Seal under the next nonce, which is taken before anything can wait or fail, so never twice. */
  async encrypt(plaintext: Bytes, associated: Bytes = NOTHING): Promise<Bytes> {
    const parameters = gcm(this.#next(), associated);
    this.nonce += 1;
    return new Uint8Array(await subtle.encrypt(parameters, await this.#key, plaintext));
  }

  /** Open with the next nonce; a forgery does not use it up. The caller waits for one before it asks for the next. */
  async decrypt(ciphertext: Bytes, associated: Bytes = NOTHING): Promise<Bytes> {
    const parameters = gcm(this.#next(), associated);
    const key = await this.#key;
    const plaintext = await subtle.decrypt(parameters, key, ciphertext).catch(() => {
      throw new ChannelError("a message does not open");
    });
    this.nonce += 1;
    return new Uint8Array(plaintext);
  }

  /** Replace the key by a one-way function of it; the nonce goes on (section 4.2). */
  rekey(): void {
    this.#key = this.#key.then(async (key) => {
      const replaced = await subtle.encrypt(REKEY_PARAMETERS, key, new Uint8Array(LIMITS.KEY_BYTES));
      return importKey(new Uint8Array(replaced, 0, LIMITS.KEY_BYTES));
    });
  }

  #next(): number {
    // The protocol allows twice as many bits; no channel lives for that many records.
    if (this.nonce >= Number.MAX_SAFE_INTEGER) throw new ChannelError("the nonces of this key are used up");
    return this.nonce;
  }
}

type Step = "write" | "read" | "split" | "done";

/** The end that writes message 1. */
export class Initiator {
  readonly #static: KeyPair;
  readonly #remoteStatic: Bytes;
  readonly #prologue: Bytes;
  readonly #newEphemeral: () => Promise<KeyPair>;
  #handshake: { state: SymmetricState; ephemeral: KeyPair } | null = null;
  #step: Step = "write";

  /** `newEphemeral` is given by test vectors only. */
  constructor(
    staticKey: KeyPair,
    remoteStatic: Bytes,
    prologue: Bytes,
    newEphemeral: () => Promise<KeyPair> = newChannelKey,
  ) {
    this.#static = staticKey;
    this.#remoteStatic = remoteStatic;
    this.#prologue = prologue;
    this.#newEphemeral = newEphemeral;
  }

  /** Message 1. Throws ChannelError for a remote static key that is none. */
  async write(payload: Bytes): Promise<Bytes> {
    this.#advance("write", "read");
    const state = await SymmetricState.start(this.#prologue, this.#remoteStatic);
    const ephemeral = await this.#newEphemeral();
    this.#handshake = { state, ephemeral };
    await state.mixHash(ephemeral.publicKey);
    await state.mixKey(await exchange(ephemeral, this.#remoteStatic));
    const staticKey = await state.encryptAndHash(this.#static.publicKey);
    await state.mixKey(await exchange(this.#static, this.#remoteStatic));
    return concat(ephemeral.publicKey, staticKey, await state.encryptAndHash(payload));
  }

  /** The payload of message 2. The caller waits for one before it tries the next. */
  async read(message: Bytes): Promise<Bytes> {
    if (this.#step !== "read" || this.#handshake === null) throw new LocalError("no message 2 is awaited");
    if (message.length < LIMITS.KEY_BYTES + TAG_BYTES || message.length > MESSAGE_BYTES) {
      throw new ChannelError("a handshake message has no possible length");
    }
    const { ephemeral } = this.#handshake;
    const state = this.#handshake.state.copy();
    const remoteEphemeral = message.slice(0, LIMITS.KEY_BYTES);
    await state.mixHash(remoteEphemeral);
    await state.mixKey(await exchange(ephemeral, remoteEphemeral));
    await state.mixKey(await exchange(this.#static, remoteEphemeral));
    const payload = await state.decryptAndHash(message.slice(LIMITS.KEY_BYTES));
    this.#advance("read", "split");
    this.#handshake = { state, ephemeral };
    return payload;
  }

  /** The ciphers for sending and for receiving. */
  async split(): Promise<{ send: CipherState; receive: CipherState }> {
    this.#advance("split", "done");
    const { state } = this.#handshake!;
    this.#handshake = null;
    const [send, receive] = await state.split();
    return { send, receive };
  }

  #advance(expected: Step, following: Step): void {
    if (this.#step !== expected) throw new LocalError(`the handshake expects ${this.#step}, not ${expected}`);
    this.#step = following;
  }
}

/** Chaining key, transcript hash and the current handshake cipher (section 5.2). */
class SymmetricState {
  #hash: Bytes;
  #chainingKey: Bytes;
  #cipher: CipherState | null = null;

  private constructor(hash: Bytes, chainingKey: Bytes) {
    this.#hash = hash;
    this.#chainingKey = chainingKey;
  }

  static async start(prologue: Bytes, responderStatic: Bytes): Promise<SymmetricState> {
    // Section 5.2: a name that fits a hash is padded with zeros instead of hashed.
    const name = concat(PROTOCOL_NAME, new Uint8Array(HASH_BYTES - PROTOCOL_NAME.length));
    const state = new SymmetricState(name, name);
    await state.mixHash(prologue);
    await state.mixHash(responderStatic);
    return state;
  }

  /** Another state with the same content; only its cipher is shared, and mixKey replaces that before it is used again. */
  copy(): SymmetricState {
    return new SymmetricState(this.#hash, this.#chainingKey);
  }

  async mixHash(data: Bytes): Promise<void> {
    this.#hash = new Uint8Array(await subtle.digest("SHA-256", concat(this.#hash, data)));
  }

  async mixKey(secret: Bytes): Promise<void> {
    const [chainingKey, key] = await hkdf(this.#chainingKey, secret);
    this.#chainingKey = chainingKey;
    this.#cipher = new CipherState(key);
  }

  async encryptAndHash(plaintext: Bytes): Promise<Bytes> {
    const ciphertext = await this.#keyed.encrypt(plaintext, this.#hash);
    await this.mixHash(ciphertext);
    return ciphertext;
  }

  async decryptAndHash(ciphertext: Bytes): Promise<Bytes> {
    const plaintext = await this.#keyed.decrypt(ciphertext, this.#hash);
    await this.mixHash(ciphertext);
    return plaintext;
  }

  /** The initiator's sending cipher, then the responder's. */
  async split(): Promise<[CipherState, CipherState]> {
    const [first, second] = await hkdf(this.#chainingKey, NOTHING);
    return [new CipherState(first), new CipherState(second)];
  }

  get #keyed(): CipherState {
    if (this.#cipher === null) throw new LocalError("in IK every encryption follows a key exchange");
    return this.#cipher;
  }
}

const { subtle } = globalThis.crypto;
const PROTOCOL_NAME = utf8("Noise_IK_25519_AESGCM_SHA256");
const HASH_BYTES = 32;

function importKey(key: Bytes): Promise<CryptoKey> {
  return subtle.importKey("raw", key, "AES-GCM", false, ["encrypt", "decrypt"]);
}

/** Section 12.4: 32 zero bits, then the nonce in big-endian order. */
function gcm(nonce: number, associated: Bytes): AesGcmParams {
  const iv = new DataView(new ArrayBuffer(12));
  iv.setUint32(4, Math.floor(nonce / 2 ** 32));
  iv.setUint32(8, nonce % 2 ** 32);
  return { name: "AES-GCM", iv, additionalData: associated };
}

/** Section 4.2: the nonce 2^64 - 1, which no message has. */
const REKEY_PARAMETERS: AesGcmParams = {
  name: "AES-GCM",
  iv: concat(new Uint8Array(4), new Uint8Array(8).fill(0xff)),
};

/** X25519. An all-zero secret, which a peer gets by sending a point of low order, is refused whatever the platform thinks. */
async function exchange(key: KeyPair, publicKey: Bytes): Promise<Bytes> {
  try {
    const peer = await subtle.importKey("raw", publicKey, "X25519", false, []);
    const secret = new Uint8Array(await subtle.deriveBits({ name: "X25519", public: peer }, key.privateKey, 256));
    if (secret.some((byte) => byte !== 0)) return secret;
  } catch {
    // The platform refused it itself.
  }
  throw new ChannelError("a key of the handshake is none");
}

/** Section 4.3, with two outputs. */
async function hkdf(chainingKey: Bytes, secret: Bytes): Promise<[Bytes, Bytes]> {
  const temporary = await hmac(chainingKey, secret);
  const first = await hmac(temporary, Uint8Array.of(1));
  return [first, await hmac(temporary, concat(first, Uint8Array.of(2)))];
}

async function hmac(key: Bytes, data: Bytes): Promise<Bytes> {
  const imported = await subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await subtle.sign("HMAC", imported, data));
}
