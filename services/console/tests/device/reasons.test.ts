import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { closedBecause, refusedBecause } from "../../src/device/reasons.ts";

/** The names of a table of `bothy_device/texts.py`. */
async function namesOf(table: string): Promise<string[]> {
  const texts = await readFile("../device/bothy_device/texts.py", "utf8");
  const body = new RegExp(`^${table}: .*\\{\\n([\\s\\S]*?)^\\}`, "m").exec(texts)?.[1] ?? "";
  return [...body.matchAll(/^ {4}"(\w+)":/gm)].map((match) => match[1] ?? "");
}

test("every reason and refusal that the command line explains is explained here", async () => {
  const [reasons, refusals] = [await namesOf("CLOSE_REASONS"), await namesOf("REFUSALS")];
  assert.ok(reasons.length > 10 && refusals.length > 5);
  for (const reason of reasons) assert.doesNotMatch(closedBecause(reason), new RegExp(`: ${reason}$`));
  for (const code of refusals) assert.doesNotMatch(refusedBecause(code), new RegExp(`: ${code}$`));
});

test("what is new is told as it is", () => {
  assert.equal(closedBecause("moved"), "the session has ended: moved");
  assert.equal(closedBecause(""), "the session has ended: no reason was given");
  assert.equal(refusedBecause("tired"), "the host refused: tired");
});
