/**
 * What the two handshake messages say, and what they are bound to.
 *
 * The handshake itself is Noise IK (noise.ts). Its payloads are JSON objects, strict like the text frames.
 */

import { type Bytes, toBase64, utf8 } from "./bytes.ts";
import { ChannelError } from "./errors.ts";
import { labelled } from "./signing.ts";
import { Fields } from "./strict_json.ts";
import { LIMITS } from "./wire.ts";

const RESUMES = ["new", "repaint", "exact"] as const;
/** How a session goes on over a new pairing (docs/spec/protocol.md, Resume). */
export type Resume = (typeof RESUMES)[number];

const REFUSAL_CODES = [
  "token_expired",
  "token_replayed",
  "token_invalid",
  "device_not_authorized",
  "profile_mismatch",
  "session_unknown",
  "size_invalid",
] as const;
export type RefusalCode = (typeof REFUSAL_CODES)[number];

/** What the device asks for. It can be replayed and has no forward secrecy, so it holds nothing else. */
export interface Message1 {
  readonly token: string;
  readonly profile: string;
  readonly sessionUser: string;
  readonly columns: number;
  readonly rows: number;
  readonly term: string;
  /** The input lineage that the device holds; none at first. */
  readonly lineage: Bytes | null;
  readonly outputProcessed: number;
  readonly inputSent: number;
}

/** The host's yes: where output starts on this channel, and how much input of the lineage it holds. */
export interface Accepted {
  readonly type: "accepted";
  readonly resume: Resume;
  readonly lineage: Bytes;
  readonly outputPosition: number;
  readonly inputReceived: number;
}

/** The host's no; the device leaves and acts on the code. */
export interface Refused {
  readonly type: "refused";
  readonly code: RefusalCode;
}

/** What both ends must agree on before the first key: a handshake of another session or host does not open. */
export function prologue(sessionId: string, hostId: string): Bytes {
  return labelled("bothy-channel-v1", sessionId, hostId);
}

/** The payload of message 1, the fields in the order of bothy_wire. */
export function encodeMessage1(message1: Message1): Bytes {
  return utf8(
    JSON.stringify({
      token: message1.token,
      profile: message1.profile,
      session_user: message1.sessionUser,
      columns: message1.columns,
      rows: message1.rows,
      term: message1.term,
      lineage: message1.lineage && toBase64(message1.lineage),
      output_processed: message1.outputProcessed,
      input_sent: message1.inputSent,
    }),
  );
}

/** Read the payload of message 2. Throws ChannelError; the message never quotes the input. */
export function decodeMessage2(raw: Bytes): Accepted | Refused {
  const fields = new Fields(text(raw), unexpected);
  const message2 = body(fields);
  fields.end();
  return message2;
}

function body(fields: Fields): Accepted | Refused {
  const type = fields.oneOf("type", ["accepted", "refused"]);
  if (type === "refused") return { type, code: fields.oneOf("code", REFUSAL_CODES) };
  return {
    type,
    resume: fields.oneOf("resume", RESUMES),
    lineage: fields.bytes("lineage", LIMITS.LINEAGE_BYTES),
    outputPosition: fields.position("output_position"),
    inputReceived: fields.position("input_received"),
  };
}

function text(raw: Bytes): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(raw);
  } catch {
    throw unexpected();
  }
}

function unexpected(): ChannelError {
  return new ChannelError("a handshake payload that is not expected here");
}
