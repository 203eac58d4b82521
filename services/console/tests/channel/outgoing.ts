/** What an end has to say now, in a list. */

import type { Bytes } from "../../src/channel/bytes.ts";
import type { DeviceEnd } from "../../src/channel/device_end.ts";

export async function outgoing(end: DeviceEnd): Promise<Bytes[]> {
  const messages: Bytes[] = [];
  await end.sendOutgoing((message) => messages.push(message));
  return messages;
}
