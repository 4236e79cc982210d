// Names: what looks the same comes with its id, hostile characters are not shown, and a search finds one or says why not.
import "./browser";
import assert from "node:assert/strict";
import { test } from "node:test";
import { assets, labelOf, markets } from "../src/names";

const id = (letters) => letters.repeat(32);
const market = (letters, code, name = "", state = "STATE_ACTIVE") => ({ id: id(letters), code, name, state });

function take(...rows) {
  markets.take(rows);
  return Object.fromEntries([...markets.known.values()].map((one) => [one.id.slice(0, 2), one.text]));
}

test("a label has one line, no characters that turn or hide text, and 40 letters at most", () => {
  assert.equal(labelOf("\u202eevil\u2066 \u05e9\u05dc\u05d5\u05dd"), "evil \u05e9\u05dc\u05d5\u05dd");
  assert.equal(labelOf("a\r\n \u200bb"), "a b");
  assert.equal(labelOf("é".repeat(50)), `${"é".repeat(40)}…`);
  assert.equal(labelOf("reference".repeat(1112)), `${"reference".repeat(5).slice(0, 40)}…`);
});

test("a name that may be taken for another one's comes with its id", () => {
  const shown = take(
    market("a1", "BTC/USD"),
    market("a2", "ÜBER/\"X\""),
    market("a3", ""),
    market("a4", "BTC\u200b/USD"),
    market("a5", id("a1")),
    market("a6", "\u200b\u2060"),
    market("a7", "btc/usd "),
  );
  assert.deepEqual(shown, {
    a1: "BTC/USD a1a1a1a1…a1a1a1",
    a2: "ÜBER/\"X\"",
    a3: "a3a3a3a3…a3a3a3",
    a4: "BTC/USD a4a4a4a4…a4a4a4",
    a5: `${id("a1").slice(0, 40)}… a5a5a5a5…a5a5a5`,
    a6: "a6a6a6a6…a6a6a6",
    a7: "btc/usd a7a7a7a7…a7a7a7",
  });
});

test("a market is found by its name, its code, its id and a part of it", () => {
  take(market("a1", "BTC/USD", "Bitcoin"), market("b2", "ETH/USD", "Ether", "STATE_SETTLED"));
  for (const text of ["BTC/USD", "btc/usd", "Bitcoin", "bitc", id("a1"), id("A1"), id("a1").slice(0, 16), " btc "]) {
    assert.deepEqual(markets.find(text), { id: id("a1") }, text);
  }
  assert.deepEqual(markets.find("usd"), {
    problem: "2 markets match; Enter takes BTC/USD", first: id("a1"),
  });
  assert.deepEqual(markets.find(""), { id: "" });
  assert.deepEqual(markets.find(id("c3")), { id: id("c3") });
  assert.deepEqual(markets.find("no such market"), { problem: "No market found" });
});

test("of two markets of one name the one with the id is meant, and ended ones come last", () => {
  take(market("a1", "BTC/USD", "", "STATE_SETTLED"), market("a4", "BTC/USD"), market("a5", "AAA", "", "STATE_UNKNOWN"));
  assert.deepEqual(markets.find("BTC/USD a4a4a4a4…a4a4a4"), { id: id("a4") });
  assert.equal(markets.find("btc/usd").first, id("a4"));
  assert.deepEqual(markets.matching("").map((one) => one.id.slice(0, 2)), ["a4", "a1", "a5"]);
});

test("an asset may be a short word of its own", () => {
  assets.take([{ id: "VOTE", symbol: "VOTE", name: "Vote", status: "STATUS_ENABLED" }]);
  assert.equal(assets.known.get("VOTE").text, "VOTE");
  assert.deepEqual(assets.find("vote"), { id: "VOTE" });
  assert.deepEqual(assets.find("OTHER-1"), { id: "OTHER-1" });
});
