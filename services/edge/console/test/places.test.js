// At most four pages of a browser have a stream, also while pages come, leave and are killed.
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { HEARD_WITHIN_MS, isFirst, PLACES, Places } from "../src/places";

/** Channels of one browser: a message reaches all others at once. */
function browser() {
  const channels = new Set();
  let messages = 0;
  const open = () => {
    const channel = {
      postMessage(data) {
        messages += 1;
        for (const other of channels) if (other !== channel) other.onmessage({ data });
      },
    };
    channels.add(channel);
    return { channel, kill: () => channels.delete(channel) };
  };
  const count = () => {
    const sent = messages;
    messages = 0;
    return sent;
  };
  return { open, count };
}

test("the four pages that wait longest are first, and a tie has one order", () => {
  const claims = ["a", "b", "c", "d", "e"].map((id, row) => ({ id, since: row < 3 ? row : 7 }));
  const first = claims.filter((own) => isFirst(own, claims.filter((other) => other !== own)));
  assert.deepEqual(first.map(({ id }) => id), ["a", "b", "c", "d"]);
});

test("a page gets a place when one that has a place leaves or is killed", () => {
  const [{ open, count }, clock] = [browser(), mock.method(performance, "now", () => 0)];
  const pages = Array.from({ length: 6 }, (_, row) => {
    const { channel, kill } = open();
    return { places: new Places(channel, () => {}, `${row}`), kill };
  });
  const time = mock.method(Date, "now", () => 1);
  const placed = () => pages.flatMap(({ places }, row) => (places.isFree ? [row] : []));
  pages.forEach(({ places }, row) => {
    time.mock.mockImplementation(() => 100 + row);
    count();
    places.enter();
    places.enter();
    assert.equal(count(), 1 + row, "one message, and one answer of each page");
  });
  assert.deepEqual(placed(), [0, 1, 2, 3]);
  assert.equal(placed().length, PLACES);
  pages[1].places.leave();
  assert.deepEqual(placed(), [0, 2, 3, 4]);
  time.mock.mockImplementation(() => 200);
  pages[1].places.enter();
  assert.deepEqual(placed(), [0, 2, 3, 4], "a page that comes again is the last one");
  pages[2].kill();
  clock.mock.mockImplementation(() => HEARD_WITHIN_MS + 1);
  pages.forEach(({ places }, row) => row !== 2 && places.announce());
  assert.deepEqual(placed().filter((row) => row !== 2), [0, 3, 4, 5]);
  mock.restoreAll();
});

test("without a channel a page always has a place", () => {
  const places = new Places(undefined, () => {});
  places.enter();
  assert.equal(places.isFree, true);
});
