// The candles of many markets while the gateway gives none.
import "./browser";
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { follow } from "../src/days";

test("failed reads are repeated by few requests, by none of a hidden page", async () => {
  let requests = 0;
  globalThis.fetch = async () => (requests++, new Response("{}", { status: 503 }));
  globalThis.EventSource = class {
    addEventListener() {}
    close() {}
  };
  document.visibilityState = "visible";
  mock.timers.enable({ apis: ["setTimeout"] });
  const seconds = async (count) => {
    requests = 0;
    for (let second = 0; second < count; second += 1) {
      mock.timers.tick(1000);
      for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
      await new Promise(setImmediate);
    }
    return requests;
  };
  const leave = follow(Array.from({ length: 30 }, (_, market) => `market-${market}`));
  await seconds(60);
  const during = await seconds(600);
  assert.ok(during >= 600 && during <= 1800, `${during} requests in 600 s`);
  document.visibilityState = "hidden";
  await seconds(5);
  assert.equal(await seconds(300), 0);
  document.visibilityState = "visible";
  assert.ok((await seconds(120)) > 0);
  leave();
  await seconds(5);
  assert.equal(await seconds(120), 0);
});
