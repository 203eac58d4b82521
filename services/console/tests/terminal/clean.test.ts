import assert from "node:assert/strict";
import { test } from "node:test";

import { cleanPaste, cleanTitle, shownAddress, webAddress } from "../../src/terminal/clean.ts";

test("no paste holds what ends its bracket, however it is written or put together", () => {
  const attacks = [
    "safe\u001b[201~\rrm -rf /\r",
    "safe\u009b201~\rrm -rf /\r",
    "\u001b[20\u001b[201~1~",
    "\u001b[0201~",
    "\u001b\u001b[201~",
    "\u001b[\u0000201~",
    "\u0003\u0004\u001a\u007f\u0090\u009c\u009d",
  ];
  for (const attack of attacks) assert.doesNotMatch(cleanPaste(attack), /[\u0000-\u0008\u000b-\u000c\u000e-\u001f\u007f-\u009f]/);
});

test("a paste keeps its text, tabs and line ends", () => {
  const text = "\tif x:\r\n\t\tprint('\u00e9 \u{1f600} \u200d')\n[201~";
  assert.equal(cleanPaste(text), text);
});

test("a title is one short line without invisible marks", () => {
  assert.equal(cleanTitle("  a\u001b[31m\n\u202eb\u2066 c  "), "a [31m b c");
  assert.equal([...cleanTitle("\u{1f600}".repeat(500))].length, 80);
  assert.equal(cleanTitle("x".repeat(80)), "x".repeat(80));
});

test("only addresses of the web are opened", () => {
  assert.equal(webAddress("https://example.com/a?b#c"), "https://example.com/a?b#c");
  assert.equal(webAddress("HTTP://example.com"), "http://example.com/");
  for (const other of ["javascript:alert(1)", "java\nscript:alert(1)", "data:text/html,x", "file:///etc/passwd", "example.com", ""]) {
    assert.equal(webAddress(other), null, other);
  }
});

test("no name before the host is opened or shown, and the host is shown whole", () => {
  assert.equal(webAddress("https://bank.example.com:pass@evil.example.com/"), "https://evil.example.com/");
  const host = `${"bank.example.com.".repeat(9)}evil.example.com`;
  assert.equal(shownAddress(`https://a@${host}/${"x".repeat(500)}`), `https://${host}/${"x".repeat(78)}\u2026`);
  assert.equal(shownAddress("https://example.com/\u202ea"), "https://example.com/%E2%80%AEa");
  assert.equal(shownAddress("javascript:alert(1)"), "");
});

test("of a title of megabytes only the beginning is looked at", () => {
  assert.equal(cleanTitle(`${" ".repeat(1000)}x${" ".repeat(10_000_000)}y`), "x");
});
