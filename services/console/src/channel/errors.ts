/**
 * Whose fault it is: a broken peer or a broken caller.
 *
 *     RemoteError          the peer broke the protocol; close with .code
 *       FrameError         a text frame that is not one of ours
 *       ChannelError       a handshake or a record that does not open or is not allowed here
 *     LocalError           our own code called in the wrong state: a bug, never a peer's doing
 */

/** The peer broke the protocol. `code` is the close code that answers it. */
export class RemoteError extends Error {
  override readonly name: string = "RemoteError";
  readonly code: number = 4105;
}

/** A text frame that is malformed, unknown or not allowed in this direction. */
export class FrameError extends RemoteError {
  override readonly name = "FrameError";
}

/** A handshake message or a record that does not open, or that is not allowed in this state. */
export class ChannelError extends RemoteError {
  override readonly name = "ChannelError";
  override readonly code = 4107;
}

/** A call that the state does not allow. It shows a defect of the caller. */
export class LocalError extends Error {
  override readonly name = "LocalError";
}
