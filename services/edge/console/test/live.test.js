// The pace of the chain as *Export* shows it.
import "./browser";
import assert from "node:assert/strict";
import { test } from "node:test";
import { secondsPerBlock } from "../src/live";

test("two looks two seconds apart give no pace, twelve seconds do", () => {
  assert.equal(secondsPerBlock([0, 2], [7, 8]), undefined);
  assert.equal(secondsPerBlock([0, 2, 12], [7, 8, 19]), 1);
});
