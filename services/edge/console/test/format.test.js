// Figures are scaled exactly, whatever their length; what is no figure stays as it is.
import assert from "node:assert/strict";
import { test } from "node:test";
import { age, bytes, change, grouped, local, nanoseconds, quoted, scaled, short, time, word } from "../src/format";

const plain = (text) => text.replaceAll("\u202f", "");

test("digits are grouped by three from the right", () => {
  assert.equal(grouped("-1234567"), "-1\u202f234\u202f567");
  for (const same of ["1234", "12.5", "x", ""]) assert.equal(grouped(same), same);
});

test("a figure is moved by its decimals and never rounded", () => {
  for (const [value, places, least, expected] of [
    ["123456789012345678901234567", 6, 0, "123456789012345678901.234567"],
    ["1500000", 6, 0, "1.5"],
    ["1010", 5, 5, "0.01010"],
    ["97600000", 5, 5, "976.00000"],
    ["-1", 6, 0, "-0.000001"],
    ["-9223372036854775807", 3, 3, "-9223372036854775.807"],
    ["12", -1, 0, "120"],
    ["-0", 3, 0, "0"],
    ["0", 3, 3, "0.000"],
    ["1.25", 1, 0, "0.125"],
    ["123456789", 2147483647, 0, "123456789"],
    ["123456789", -2147483648, 0, "123456789"],
    ["NaN", 3, 0, "NaN"],
  ]) {
    assert.equal(plain(scaled(value, places, least)), expected, `${value}, ${places}`);
  }
  assert.equal(scaled("123456", 6, 0, 3), "0.123…");
});

test("times are shown in UTC with as many digits as are set, and read back", () => {
  assert.equal(time("1687258799120456000"), "2023-06-20 10:59:59.120456");
  assert.equal(time("-1"), "1969-12-31 23:59:59.999999999");
  assert.equal(time("0"), "not set");
  assert.equal(time("soon"), "soon");
  assert.equal(local("1687258799120456000"), "2023-06-20T10:59:59");
  assert.equal(nanoseconds("2023-06-20T10:59:59"), "1687258799000000000");
  assert.equal(nanoseconds(""), "");
});

test("what is no time, or none that 64 bits of nanoseconds hold, is not taken for no time", () => {
  for (const wrong of [
    "20265-11-30T12:00", "202650-11-30T12:00:00", "2262-04-11T23:48", "9999-01-01T00:00", "1969-12-31T23:59",
    "0001-01-01T00:00", "abc", "2026-01-01", "2026-01-01T00:00:00Z", "2026-13-01T00:00", "9223372036854775808", "-1",
    "99999999999999999999", " ",
  ]) {
    assert.equal(nanoseconds(wrong), undefined, wrong);
  }
  assert.equal(nanoseconds("1970-01-01T00:00"), "0");
  assert.equal(nanoseconds("2262-04-11T23:47"), "9223372020000000000");
  assert.equal(nanoseconds("9223372036854775807"), "9223372036854775807");
  assert.equal(local("9223372036854775808"), "");
});

test("ages, sizes, changes and names are short", () => {
  assert.deepEqual([3, 300, 7200, 400_000].map((s) => age(s * 1000)), ["3 s", "5 min", "2 h", "5 d"]);
  assert.deepEqual([999, 1500, 72_600].map(bytes), ["999 B", "1.50 kB", "72.6 kB"]);
  assert.deepEqual([change("200", "203"), change("200", "100"), change("0", "1")], ["+1.50 %", "−50.00 %", "–"]);
  assert.deepEqual([change("100000", "99999"), change("7", "7")], ["0.00 %", "0.00 %"]);
  assert.equal(short("a1".repeat(32)), "a1a1a1a1…a1a1a1");
  assert.equal(short("VOTE"), "VOTE");
  assert.equal(word("ACCOUNT_TYPE_GLOBAL_REWARD", "ACCOUNT_TYPE_"), "Global reward");
  assert.equal(word("<b>", "ACCOUNT_TYPE_"), "<b>");
});

test("a printed command line takes any text as one word", () => {
  assert.equal(quoted("http://127.0.0.1:8080/x"), "http://127.0.0.1:8080/x");
  assert.equal(quoted("it's $(x)"), "'it'\\''s $(x)'");
});
