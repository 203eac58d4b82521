/** What the client sends, and what it makes of the answers; `fetch` is a script. */

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { newKeys } from "../../src/device/keys.ts";
import { Refusal, Rest, Unreachable } from "../../src/device/rest.ts";
import type { Identity } from "../../src/device/vault.ts";

interface Sent {
  readonly path: string;
  readonly headers: Headers;
}

const ORIGINAL = globalThis.fetch;
afterEach(() => {
  globalThis.fetch = ORIGINAL;
});

/** Signing in works always; other paths get `answers` in turn, an Error is a way that breaks. */
function relay(...answers: (Response | Error)[]): Sent[] {
  const sent: Sent[] = [];
  let tokens = 0;
  globalThis.fetch = (input, init) => {
    const path = String(input);
    if (path.endsWith("/auth/challenge")) return Promise.resolve(Response.json({ challenge: "AAAA" }));
    if (path.endsWith("/auth/token")) return Promise.resolve(Response.json({ access_token: `token-${++tokens}` }));
    sent.push({ path, headers: new Headers(init?.headers) });
    const answer = answers.shift();
    if (answer === undefined) throw new Error("one request too many");
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
  };
  return sent;
}

function problem(status: number, code: string): Response {
  const headers = { "content-type": "application/problem+json", "retry-after": "3" };
  return new Response(JSON.stringify({ code, detail: `${code}!` }), { status, headers });
}

async function signedIn(patience?: number): Promise<Rest> {
  const identity: Identity = { deviceId: "d", deviceName: "n", personId: "p", personName: "Robin", keys: await newKeys() };
  return new Rest("https://relay.example.com", identity, patience);
}

test("a call carries a token, which is made once", async () => {
  const rest = await signedIn();
  const sent = relay(Response.json({ a: 1 }), Response.json({ a: 2 }));
  assert.deepEqual(await Promise.all([rest.call("GET", "/me"), rest.call("GET", "/hosts")]), [{ a: 1 }, { a: 2 }]);
  assert.deepEqual(sent.map(({ path }) => path), ["/api/v1/me", "/api/v1/hosts"]);
  assert.deepEqual(sent.map(({ headers }) => headers.get("authorization")), ["Bearer token-1", "Bearer token-1"]);
});

test("a token that counts no more is made anew, once", async () => {
  const rest = await signedIn();
  const sent = relay(problem(401, "token_invalid"), Response.json({}), problem(401, "token_invalid"), problem(401, "token_invalid"));
  await rest.call("GET", "/me");
  assert.equal(sent[1]?.headers.get("authorization"), "Bearer token-2");
  await assert.rejects(rest.call("GET", "/me"), (error) => error instanceof Refusal && error.code === "token_invalid");
});

test("what makes something is sent again where nobody answered, under the same name", async () => {
  const rest = await signedIn();
  const sent = relay(new TypeError("broken"), Response.json({ made: 1 }));
  assert.deepEqual(await rest.make("/hosts", {}), { made: 1 });
  const names = sent.map(({ headers }) => headers.get("idempotency-key"));
  assert.ok(names[0]);
  assert.equal(names[0], names[1]);
});

test("a refusal is final, and has words and a time", async () => {
  const rest = await signedIn();
  relay(problem(429, "rate_limited"));
  await assert.rejects(
    rest.make("/hosts", {}),
    (error) => error instanceof Refusal && error.status === 429 && error.message === "rate_limited!" && error.retryAfter === 3,
  );
});

test("who answers otherwise is no relay", async () => {
  const rest = await signedIn();
  relay(new Response("<html>", { status: 502 }), new TypeError("broken"));
  await assert.rejects(rest.call("GET", "/me"), Unreachable);
  await assert.rejects(rest.call("GET", "/me"), Unreachable);
});

test("an answer that breaks off, or is no JSON, is no answer", async () => {
  const rest = await signedIn();
  const broken = new ReadableStream({ start: (body) => body.error(new TypeError("broken")) });
  const problems = { "content-type": "application/problem+json" };
  relay(new Response(broken), Response.json(null), new Response("<html>"), new Response("<html>", { status: 503, headers: problems }));
  for (let each = 0; each < 4; each++) await assert.rejects(rest.call("GET", "/me"), Unreachable);
});

test("nobody waits for ever for an answer, and who gives it up is told so", async () => {
  const rest = await signedIn(0.01);
  const patient = await signedIn();
  relay(Response.json({}));
  await patient.call("GET", "/me");
  globalThis.fetch = (_input, init) =>
    new Promise((_resolve, reject) => {
      const end = (): void => reject(init?.signal?.reason as Error);
      if (init?.signal?.aborted) end();
      init?.signal?.addEventListener("abort", end);
    });
  await assert.rejects(rest.call("GET", "/me"), Unreachable);
  const leaving = new AbortController();
  const asked = patient.call("GET", "/me", undefined, leaving.signal);
  leaving.abort(new RangeError("left"));
  await assert.rejects(asked, RangeError);
});
