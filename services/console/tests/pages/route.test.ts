import assert from "node:assert/strict";
import { test } from "node:test";

import { type Route, hashOf, inviteOf, routeOf } from "../../src/pages/route.ts";

test("every place has an address that leads back to it", () => {
  const places: readonly Route[] = [
    { page: "hosts" },
    { page: "terminals", sessionId: null },
    { page: "terminals", sessionId: "01a22c79-0737-7c10-aaa8-8c84420d94c6" },
    { page: "account" },
    { page: "operate", part: "audit" },
  ];
  for (const place of places) assert.deepEqual(routeOf(hashOf(place)), place);
});

test("what is no address leads to the hosts, or to the first page of operators", () => {
  for (const hash of ["", "#", "#nothing", "#hosts/x", "#invite=AAAAA"]) assert.deepEqual(routeOf(hash), { page: "hosts" });
  assert.deepEqual(routeOf("#operate/nothing"), { page: "operate", part: "nodes" });
});

test("only a fragment that is an invite is one", () => {
  assert.equal(inviteOf("#invite=SX70Z-KGXH4-PFYGN-T4R6N-D8XM"), "SX70Z-KGXH4-PFYGN-T4R6N-D8XM");
  for (const hash of ["", "#invite=", "#invite=a b", "#hosts", "#x&invite=AAAAA"]) assert.equal(inviteOf(hash), null);
});
