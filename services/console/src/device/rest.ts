/**
 * The relay's REST API, as a signed-in browser uses it.
 *
 * The access token is in memory only: it is made with the device's key when one is needed, and made anew once when the relay
 * says `token_invalid`. There is no cookie, so there is nothing that another page could make the browser send.
 */

import { fromBase64, toBase64 } from "../channel/index.ts";
import { sign } from "./keys.ts";
import type { Identity } from "./vault.ts";

/** A refusal by the relay. `code` is for programs, `message` for the person, `retryAfter` in seconds. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  readonly retryAfter: number;

  constructor(status: number, code: string, detail: string, retryAfter: number) {
    super(detail);
    this.status = status;
    this.code = code;
    this.retryAfter = retryAfter;
  }
}

/** Nobody answered, or what answered is no relay. */
export class Unreachable extends Error {}

type Method = "GET" | "POST";

/** Seconds for an answer to be there, all of it. Networks that break without a word would keep a page waiting for minutes. */
const PATIENCE_S = 30;

export class Rest {
  /** Where the relay is, and for whom this device signs: the canonical origin. */
  readonly relay: string;
  readonly #identity: Identity | null;
  readonly #patience: number;
  #token: Promise<string> | null = null;

  constructor(relay: string, identity: Identity | null, patience = PATIENCE_S) {
    this.relay = relay;
    this.#identity = identity;
    this.#patience = patience;
  }

  /** A call of a signed-in person. `path` is below `/api/v1`. Throws Refusal and Unreachable. */
  call<T>(method: Method, path: string, body?: object, signal?: AbortSignal): Promise<T> {
    return this.#read<T>((until) => this.#answered(method, path, body, {}, until), signal);
  }

  /** A POST that makes something; where nobody answered it is sent once more, and makes one thing all the same. */
  async make<T>(path: string, body: object): Promise<T> {
    const headers = { "Idempotency-Key": crypto.randomUUID() };
    const attempt = (): Promise<T> => this.#read<T>((until) => this.#answered("POST", path, body, headers, until));
    return attempt().catch((error: unknown) => {
      if (error instanceof Unreachable) return attempt();
      throw error;
    });
  }

  /** The raw answer, for what is read as it comes. */
  stream(path: string, headers: { [name: string]: string }, signal: AbortSignal): Promise<Response> {
    return this.#answered("GET", path, undefined, headers, signal);
  }

  /** A call that needs nobody signed in. */
  send<T>(method: Method, path: string, body?: object): Promise<T> {
    return this.#read<T>((until) => this.#fetch(method, path, body, {}, until));
  }

  /** The whole answer within the patience, unless `signal` ends it before. */
  async #read<T>(asked: (until: AbortSignal) => Promise<Response>, signal?: AbortSignal): Promise<T> {
    const until = new AbortController();
    const stop = (): void => until.abort(signal?.reason);
    signal?.addEventListener("abort", stop);
    if (signal?.aborted) stop();
    const timer = setTimeout(() => until.abort(), this.#patience * 1000);
    try {
      return await asked(until.signal).then((answer) => jsonOf<T>(answer, until.signal));
    } catch (error) {
      if (!until.signal.aborted || signal?.aborted) throw error;
      throw new Unreachable("The relay does not answer.", { cause: error });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    }
  }

  async #answered(
    method: Method,
    path: string,
    body: object | undefined,
    headers: { [name: string]: string },
    signal?: AbortSignal,
  ): Promise<Response> {
    const token = await (this.#token ??= this.#signIn());
    try {
      return await this.#fetch(method, path, body, { ...headers, Authorization: `Bearer ${token}` }, signal);
    } catch (error) {
      if (!(error instanceof Refusal && error.code === "token_invalid")) throw error;
      this.#token = null;
    }
    const renewed = await (this.#token ??= this.#signIn());
    return this.#fetch(method, path, body, { ...headers, Authorization: `Bearer ${renewed}` }, signal);
  }

  #signIn(): Promise<string> {
    const token = this.#newToken();
    token.catch(() => {
      if (this.#token === token) this.#token = null; // the next call tries again
    });
    return token;
  }

  async #newToken(): Promise<string> {
    const identity = this.#identity;
    if (identity === null) throw new Refusal(401, "sign_in_required", "Sign in first.", 0);
    const id = identity.deviceId;
    const made = await this.send<{ challenge: string }>("POST", "/auth/challenge", { device_id: id });
    const challenge = fromBase64(made.challenge);
    if (challenge === null) throw new Unreachable("the relay gave a challenge that is none");
    const signature = toBase64(await sign(identity.keys, "device-login", this.relay, challenge, id));
    const proof = { device_id: id, challenge: made.challenge, signature };
    return (await this.send<{ access_token: string }>("POST", "/auth/token", proof)).access_token;
  }

  async #fetch(
    method: Method,
    path: string,
    body: object | undefined,
    headers: { [name: string]: string },
    signal?: AbortSignal,
  ): Promise<Response> {
    let answer: Response;
    try {
      answer = await fetch(`/api/v1${path}`, {
        method,
        headers: body === undefined ? headers : { ...headers, "Content-Type": "application/json" },
        body: body === undefined ? null : JSON.stringify(body),
        credentials: "omit",
        redirect: "error",
        cache: "no-store",
        signal: signal ?? null,
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Unreachable("The relay is out of reach.", { cause: error });
    }
    if (!answer.ok) throw await refusal(answer, signal);
    return answer;
  }
}

async function refusal(answer: Response, signal?: AbortSignal): Promise<Error> {
  if (answer.headers.get("content-type") !== "application/problem+json") {
    return new Unreachable(`The answer ${answer.status} is not the relay's.`);
  }
  const problem = await jsonOf<{ code: string; detail: string }>(answer, signal);
  return new Refusal(answer.status, problem.code, problem.detail, Number(answer.headers.get("retry-after") ?? 0) || 0);
}

/** All answers of the relay are objects. */
async function jsonOf<T>(answer: Response, signal?: AbortSignal): Promise<T> {
  try {
    const value: unknown = await answer.json();
    if (typeof value === "object" && value !== null) return value as T;
  } catch (error) {
    if (signal?.aborted) throw error;
    // What was read is no JSON, or not all of it came.
  }
  throw new Unreachable("The answer is not the relay's, or broke off.");
}
