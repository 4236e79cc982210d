// Blocks by time: forms of a time, and the search for the newest block at or before one.
import "./browser";
import assert from "node:assert/strict";
import { test } from "node:test";
import { instant, search } from "../src/blocks";

test("a time is read as UTC unless it names an offset", () => {
  const noon = 1777636800000000000n;
  for (const text of ["2026-05-01T12:00:00Z", "2026-05-01 12:00", " 2026-05-01 12:00:00 UTC ", "2026-05-01t14:00:00+02:00"]) {
    assert.equal(instant(text), noon, text);
  }
  assert.equal(instant("2026-05-01"), noon - 43_200_000_000_000n);
  assert.equal(instant("2026-05-01 12:00:00.000000001"), noon + 1n);
  for (const text of ["", "noon", "2026-02-30", "2026-05-01 25:00", "2026-05-01 12", "12:00"]) {
    assert.equal(instant(text), undefined, text);
  }
});

test("the newest block at or before a time is found with few requests", async () => {
  const chains = {
    regular: (height) => 2_000_000_000n * height,
    halted: (height) => 2_000_000_000n * height + (height > 600_000n ? 10n ** 16n : 0n),
    uneven: (height) => height ** 3n,
  };
  for (const [name, timeOf] of Object.entries(chains)) {
    const block = (height) => ({ height, time: timeOf(height) });
    for (const height of [1n, 2n, 123_456n, 600_000n, 600_001n, 999_999n]) {
      for (const more of [0n, 1n]) {
        let requests = 0;
        const read = async (height) => (requests++, block(height));
        const found = await search(timeOf(height) + more, block(1n), block(1_000_000n), read);
        assert.equal(found.height, height, name);
        // 20 halve a million blocks.
        assert.ok(requests <= (name === "regular" ? 3 : 24), `${name} ${height}: ${requests} requests`);
      }
    }
  }
});
