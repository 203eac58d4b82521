// Counts the output that the terminal channels of this page deliver and, when asked, keeps it in the order in which it is
// opened. Added before the page's own script; `delivered` is what a test calls.

window.delivered = (() => {
  const DATA = 1; // the type of a record, docs/spec/protocol.md
  const decrypt = SubtleCrypto.prototype.decrypt;
  let count = 0;
  let kept = null;

  SubtleCrypto.prototype.decrypt = async function (...request) {
    const plain = await decrypt.apply(this, request);
    const record = new Uint8Array(plain);
    if (record[0] === DATA) {
      count += record.length - 1;
      kept?.push(String.fromCharCode(...record.subarray(1)));
    }
    return plain;
  };

  return {
    count: () => count,
    keep: () => (kept = []),
    /** How many bytes there are between two marks, and their SHA-256. */
    async between(begin, end) {
      const all = kept.join("");
      const start = all.indexOf(begin) + begin.length;
      const data = Uint8Array.from(all.slice(start, all.indexOf(end, start)), (each) => each.charCodeAt(0));
      const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", data));
      return { bytes: data.length, hash: [...hash].map((each) => each.toString(16).padStart(2, "0")).join("") };
    },
  };
})();
