/**
 * Records: what travels in the open channel, one in each message.
 *
 * A record is one type byte and a body of at most `RECORD_BYTES` together. Numbers are big-endian.
 *
 *     name     type  direction   body
 *     DATA     0x01  both        1 or more bytes
 *     ACK      0x02  both        u64 position processed
 *     RESIZE   0x03  to host     u16 columns, u16 rows
 *     EXIT     0x04  to device   u8 status
 *     REPAINT  0x05  to device   u8 flag (1: last, 0: more follow), then any bytes
 *     PING     0x06  to host     none
 *     PONG     0x07  to device   none
 *     NOTICE   0x08  to device   UTF-8 text of 1 to NOTICE_BYTES bytes
 *
 * An unknown type with the high bit set is ignored, any other fails the channel.
 */

import { type Bytes, concat, utf8 } from "./bytes.ts";
import { ChannelError, LocalError } from "./errors.ts";
import { type CipherState, TAG_BYTES } from "./noise.ts";
import { LIMITS } from "./wire.ts";

/** Most bytes of one piece. */
export const DATA_BYTES = LIMITS.RECORD_BYTES - 1;
export const REPAINT_BYTES = LIMITS.RECORD_BYTES - 2;
export const NOTICE_BYTES = 1024;

export type Record =
  | { readonly kind: "data"; readonly data: Bytes }
  | { readonly kind: "ack"; readonly position: number }
  | { readonly kind: "resize"; readonly columns: number; readonly rows: number }
  | { readonly kind: "exit"; readonly status: number }
  | { readonly kind: "repaint"; readonly data: Bytes; readonly last: boolean }
  | { readonly kind: "ping" }
  | { readonly kind: "pong" }
  | { readonly kind: "notice"; readonly text: string };

/** The plaintext of a record. Throws LocalError for a value outside its bounds. */
export function encodeRecord(record: Record): Bytes {
  switch (record.kind) {
    case "data":
      return typed(TYPE.data, bounded(record.data, 1, DATA_BYTES));
    case "ack":
      return typed(TYPE.ack, numbers([whole(record.position, Number.MAX_SAFE_INTEGER), 8]));
    case "resize":
      return typed(TYPE.resize, numbers([whole(record.columns, 0xffff), 2], [whole(record.rows, 0xffff), 2]));
    case "exit":
      return typed(TYPE.exit, numbers([whole(record.status, 0xff), 1]));
    case "repaint":
      return typed(TYPE.repaint, Uint8Array.of(record.last ? 1 : 0), bounded(record.data, 0, REPAINT_BYTES));
    case "ping":
      return typed(TYPE.ping);
    case "pong":
      return typed(TYPE.pong);
    case "notice":
      return typed(TYPE.notice, bounded(utf8(record.text), 1, NOTICE_BYTES));
  }
}

/** Read one plaintext; null for a type to ignore. Throws ChannelError. */
export function decodeRecord(raw: Bytes): Record | null {
  const kind = raw[0];
  if (kind === undefined || raw.length > LIMITS.RECORD_BYTES) {
    throw new ChannelError("a record has no possible length");
  }
  const body = raw.subarray(1);
  const view = new DataView(body.buffer, body.byteOffset, body.length);
  switch (kind) {
    case TYPE.data:
      if (body.length > 0) return { kind: "data", data: body };
      break;
    case TYPE.ack:
      if (body.length === 8) return { kind: "ack", position: position(view) };
      break;
    case TYPE.resize:
      if (body.length === 4) return { kind: "resize", columns: view.getUint16(0), rows: view.getUint16(2) };
      break;
    case TYPE.exit:
      if (body.length === 1) return { kind: "exit", status: view.getUint8(0) };
      break;
    case TYPE.repaint:
      if (body.length > 0 && view.getUint8(0) <= 1) {
        return { kind: "repaint", data: body.subarray(1), last: view.getUint8(0) === 1 };
      }
      break;
    case TYPE.ping:
      if (body.length === 0) return { kind: "ping" };
      break;
    case TYPE.pong:
      if (body.length === 0) return { kind: "pong" };
      break;
    case TYPE.notice:
      if (body.length > 0 && body.length <= NOTICE_BYTES) return { kind: "notice", text: text(body) };
      break;
    default:
      if (kind & IGNORED) return null;
  }
  throw new ChannelError("a record is unknown or malformed");
}

/** Encrypts records of one direction; REKEY after every `rekeyRecords` of them. */
export class Sealer {
  readonly #cipher: CipherState;
  readonly #rekeyRecords: number;

  constructor(cipher: CipherState, rekeyRecords: number = LIMITS.REKEY_RECORDS) {
    this.#cipher = cipher;
    this.#rekeyRecords = rekeyRecords;
  }

  /** The channel message of a record; to be sent in the order of the calls, whichever is ready first. */
  seal(record: Record): Promise<Bytes> {
    const message = this.#cipher.encrypt(encodeRecord(record));
    rekeyWhenDue(this.#cipher, this.#rekeyRecords);
    return message;
  }
}

/** Decrypts records of one direction, in order and one at a time, with the same REKEY. */
export class Opener {
  readonly #cipher: CipherState;
  readonly #rekeyRecords: number;

  constructor(cipher: CipherState, rekeyRecords: number = LIMITS.REKEY_RECORDS) {
    this.#cipher = cipher;
    this.#rekeyRecords = rekeyRecords;
  }

  /** The record of a channel message; null for a type to ignore. Throws ChannelError. */
  async open(message: Bytes): Promise<Record | null> {
    if (message.length > LIMITS.RECORD_BYTES + TAG_BYTES) throw new ChannelError("a record has no possible length");
    const raw = await this.#cipher.decrypt(message);
    rekeyWhenDue(this.#cipher, this.#rekeyRecords);
    return decodeRecord(raw);
  }
}

const TYPE = { data: 1, ack: 2, resize: 3, exit: 4, repaint: 5, ping: 6, pong: 7, notice: 8 } as const;
/** The bit of a type that a peer of this version may skip. */
const IGNORED = 0x80;

function rekeyWhenDue(cipher: CipherState, rekeyRecords: number): void {
  // The channel's nonces start at 0 and go on over a REKEY, so they count the records of the direction.
  if (cipher.nonce % rekeyRecords === 0) cipher.rekey();
}

function typed(type: number, ...body: readonly Bytes[]): Bytes {
  return concat(Uint8Array.of(type), ...body);
}

/** Whole numbers in big-endian order, each with its count of bytes. */
function numbers(...fields: readonly (readonly [value: number, bytes: number])[]): Bytes {
  return concat(
    ...fields.map(([value, bytes]) =>
      Uint8Array.from({ length: bytes }, (_, index) => Math.floor(value / 256 ** (bytes - 1 - index)) % 256),
    ),
  );
}

function whole(value: number, most: number): number {
  if (!Number.isInteger(value) || value < 0 || value > most) throw outOfBounds();
  return value;
}

function bounded(data: Bytes, least: number, most: number): Bytes {
  if (data.length < least || data.length > most) throw outOfBounds();
  return data;
}

function outOfBounds(): LocalError {
  return new LocalError("a record is out of its bounds");
}

function position(view: DataView<ArrayBuffer>): number {
  const value = view.getUint32(0) * 2 ** 32 + view.getUint32(4);
  // Beyond this a number of JavaScript is not exact; 8 PiB of one session are no honest position.
  if (!Number.isSafeInteger(value)) throw new ChannelError("a position that nothing can have reached");
  return value;
}

function text(raw: Bytes): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(raw);
  } catch {
    throw new ChannelError("a notice is no text");
  }
}
