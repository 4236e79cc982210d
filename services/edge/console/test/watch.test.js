// When a read without a stream is sent again.
import "./browser";
import assert from "node:assert/strict";
import { test } from "node:test";
import { HEAD, isDue } from "../src/watch";

const topic = (status, relative = "api/v2/withdrawal/aa") => ({
  relative,
  problem: status ? { status } : undefined,
  everyMs: 2000,
  askedAt: 10_000,
});

test("what does not exist is read again once after each block", () => {
  assert.equal(isDue(topic(404), 600_000, 9000), false);
  assert.equal(isDue(topic(404), 11_000, 10_500), true);
  assert.equal(isDue(topic(404, HEAD), 11_000, 9000), true, "the head itself has no block to wait for");
});

test("others are read again after their pause", () => {
  for (const [status, pause] of [[0, 2000], [503, 1000], [429, 5000]]) {
    assert.equal(isDue(topic(status), 10_000 + pause - 300, 0), false, `${status}`);
    assert.equal(isDue(topic(status), 10_000 + pause, 0), true, `${status}`);
  }
});
