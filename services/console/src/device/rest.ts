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

export class Rest {
  /** Where the relay is, and for whom this device signs: the canonical origin. */
  readonly relay: string;
  readonly #identity: Identity | null;
  #token: Promise<string> | null = null;

  constructor(relay: string, identity: Identity | null) {
    this.relay = relay;
    this.#identity = identity;
  }

  /** A call of a signed-in person. `path` is below `/api/v1`. Throws Refusal and Unreachable. */
  async call<T>(method: Method, path: string, body?: object, signal?: AbortSignal): Promise<T> {
    return (await this.#answered(method, path, body, {}, signal).then((answer) => answer.json())) as T;
  }

  /** A POST that makes something; where nobody answered it is sent once more, and makes one thing all the same. */
  async make<T>(path: string, body: object): Promise<T> {
    const headers = { "Idempotency-Key": crypto.randomUUID() };
    const attempt = (): Promise<Response> => this.#answered("POST", path, body, headers);
    const answer = await attempt().catch((error: unknown) => {
      if (error instanceof Unreachable) return attempt();
      throw error;
    });
    return (await answer.json()) as T;
  }

  /** The raw answer, for what is read as it comes. */
  stream(path: string, headers: { [name: string]: string }, signal: AbortSignal): Promise<Response> {
    return this.#answered("GET", path, undefined, headers, signal);
  }

  /** A call that needs nobody signed in. */
  async send<T>(method: Method, path: string, body?: object): Promise<T> {
    return (await this.#fetch(method, path, body, {}).then((answer) => answer.json())) as T;
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
    if (!answer.ok) throw await refusal(answer);
    return answer;
  }
}

async function refusal(answer: Response): Promise<Error> {
  if (answer.headers.get("content-type") !== "application/problem+json") {
    return new Unreachable(`The answer ${answer.status} is not the relay's.`);
  }
  const problem = (await answer.json()) as { code: string; detail: string };
  return new Refusal(answer.status, problem.code, problem.detail, Number(answer.headers.get("retry-after") ?? 0) || 0);
}
