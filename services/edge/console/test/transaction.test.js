// The recognition of a pasted transaction.
import "./browser";
import assert from "node:assert/strict";
import { test } from "node:test";
import { recognise } from "../src/transaction";

test("a number that a browser would round is refused, as text it is not", () => {
  const pasted = (nonce) => `{"tx":{"inputData":"YQ==","pow":{"tid":"t","nonce":${nonce}}}}`;
  const refused = recognise(pasted("12345678901234567891"));
  assert.deepEqual([refused.kind, refused.wrong.length], ["nothing", 1]);
  assert.equal(recognise(pasted('"12345678901234567891"')).tx.pow.nonce, "12345678901234567891");
  assert.equal(recognise(pasted("7")).tx.pow.nonce, 7);
});
