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

test("hex may have white space and 0x, and is never taken for base64", () => {
  const expected = { kind: "encoded", wrong: [], tx: "3q2+796tvu8=", length: 8 };
  for (const hex of ["deadbeefdeadbeef", "DEADBEEF\nDEADBEEF\n", " 0xdeadbeefdeadbeef", "0XDEAD beef dead\tBEEF"]) {
    assert.deepEqual(recognise(hex), expected, hex);
  }
  for (const odd of ["deadbee", "0xdeadbee", "dead bee", "0x"]) assert.equal(recognise(odd).kind, "nothing", odd);
  assert.deepEqual(recognise("ZGVh\nZA=="), { kind: "encoded", wrong: [], tx: "ZGVhZA==", length: 4 });
});

test("a key that is given twice is refused, by either of its names, and not in a text or in another object", () => {
  const of = (members) => recognise(`{"tx":{"inputData":"YQ==",${members}}}`);
  for (const members of ['"pubKey":"a","pubKey":"b"', '"input_data":"YQ=="', '"pow":{"nonce":"1","nonce":"2"}', '"pub\\u004bey":"a","pubKey" :"b"']) {
    assert.deepEqual([of(members).kind, of(members).wrong[0].endsWith("is given twice.")], ["nothing", true], members);
  }
  for (const members of ['"a":{"b":1},"c":{"b":2}', '"a":"\\"b\\":1,\\"b\\":2}{"', '"a":["b","b"],"b":"a"']) {
    assert.equal(of(members).kind, "transaction", members);
  }
});
