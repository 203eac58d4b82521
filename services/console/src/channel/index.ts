/**
 * The end-to-end channel between device and host, and what a device says on its stream socket: the port of `bothy_wire`.
 *
 * Sans I/O. A shell owns one end per session, feeds it binary frames and, whenever its socket takes more, lets
 * `sendOutgoing` send, one binary frame each.
 */

export { type Bytes, fromBase64, toBase64, utf8 } from "./bytes.ts";
export { DeviceEnd, type DeviceEndOptions } from "./device_end.ts";
export type * from "./device_events.ts";
export { ChannelError, FrameError, LocalError, RemoteError } from "./errors.ts";
export { DEFAULT_LIMITS, type Limits } from "./flow.ts";
export { SIDE_READY, type StreamFrame, decodeStreamFrame, encodeStreamIdentify } from "./frames.ts";
export type { RefusalCode, Resume } from "./handshake.ts";
export { type KeyPair, newChannelKey } from "./noise.ts";
export { type Purpose, canonicalOrigin, fingerprint, labelled, signedBytes, thumbprint } from "./signing.ts";
export { BACKOFF, LIMITS, type Retry, retryOf, textOf } from "./wire.ts";
