/** What a device's end knows of one pairing, and forgets with it. */

import type { Bytes } from "./bytes.ts";
import type { Initiator } from "./noise.ts";
import type { Opener, Sealer } from "./records.ts";

/** From `side.paired` to `side.unpaired` or the loss of the socket. */
export interface Pairing {
  state: Greeting | Channel | Over;
  /** Message 1, until it is taken. */
  readonly messages: Bytes[];
  /** Bytes that came in and are not opened yet. */
  waiting: number;
}

/** Message 1 is made. */
export interface Greeting {
  readonly kind: "greeting";
  readonly initiator: Initiator;
  readonly presented: number; // the output position of message 1
  readonly deadline: number;
}

/** The channel is open. The flags say what goes out next. */
export interface Channel {
  readonly kind: "channel";
  readonly sealer: Sealer;
  readonly opener: Opener;
  restartAt: number | null; // output counts anew from here with the host's first record
  acknowledged: number; // output position of the last ACK
  ackDue: boolean; // the first record is always an ACK
  pingDue: boolean;
  pingedAt: number | null;
  repainting: boolean;
  repaintRoom: number;
  exited: boolean;
}

/** The channel failed or was refused: binary is ignored until the pairing ends. */
export interface Over {
  readonly kind: "over";
}
