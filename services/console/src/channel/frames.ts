/** Text frames of the stream socket, as its device reads and writes them. Bytes travel as base64. */

import { type Bytes, toBase64 } from "./bytes.ts";
import { FrameError } from "./errors.ts";
import { Fields } from "./strict_json.ts";
import { LIMITS } from "./wire.ts";

/** What the relay says on a stream socket. */
export type StreamFrame =
  | { readonly type: "stream.hello"; readonly challenge: Bytes }
  | { readonly type: "side.accepted" }
  | { readonly type: "side.paired"; readonly sessionToken: string | null }
  | { readonly type: "side.unpaired" };

/** Read one frame. Throws FrameError for everything else; the message never quotes the input. */
export function decodeStreamFrame(text: string): StreamFrame {
  const fields = new Fields(text, () => new FrameError("not a frame that is expected here"));
  const frame = body(fields);
  fields.end();
  return frame;
}

/** Stream token, and the signature over the challenge (purpose `stream-identify`). */
export function encodeStreamIdentify(streamToken: string, signature: Bytes): string {
  return JSON.stringify({ type: "stream.identify", stream_token: streamToken, signature: toBase64(signature) });
}

/** The answer to `side.unpaired`, exactly once. */
export const SIDE_READY = JSON.stringify({ type: "side.ready" });

/** Most characters of any token. */
const TOKEN = 4096;

function body(fields: Fields): StreamFrame {
  const type = fields.oneOf("type", ["stream.hello", "side.accepted", "side.paired", "side.unpaired"]);
  switch (type) {
    case "stream.hello":
      return { type, challenge: fields.bytes("challenge", LIMITS.CHALLENGE_BYTES) };
    case "side.paired":
      return { type, sessionToken: fields.textOrNull("session_token", TOKEN) };
    case "side.accepted":
    case "side.unpaired":
      return { type };
  }
}
