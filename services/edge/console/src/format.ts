// Values as people read them. Amounts, heights and times stay texts or BigInts from the answer to the screen: a float
// would round them.

/** A thin space that does not break, between groups of three digits. */
const GROUP = "\u202f";

/** `-1234567` as `-1 234 567`; anything that is no integer stays as it is. */
export function grouped(digits: string): string {
  if (!/^-?\d{5,}$/.test(digits)) return digits;
  return digits.replace(/\B(?=(\d{3})+$)/g, GROUP);
}

/** Decimal places that can be meant; others, which are anybody's numbers, too, scale nothing. */
export function canScale(places: number): boolean {
  return Math.abs(places) <= 80;
}

/**
 * A decimal text divided by ten to the power of `places` (multiplied where they are negative). Its digits are
 * moved and never computed with, so it is exact. Zeros at its end are left out beyond `least` decimals; those
 * beyond `most` are cut off, which `…` says.
 */
export function scaled(value: string, places: number, least = 0, most = Infinity): string {
  const [, sign, whole, fraction = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(value) ?? [];
  if (whole === undefined || !canScale(places)) return grouped(value);
  const digits = "0".repeat(Math.max(0, places)) + whole + fraction + "0".repeat(Math.max(0, -places - fraction.length));
  const point = Math.max(0, places) + whole.length - places;
  const front = digits.slice(0, point).replace(/^0+(?=\d)/, "");
  const decimals = digits.slice(point).replace(/0+$/, "");
  const back = decimals.length > most ? `${decimals.slice(0, most)}…` : decimals.padEnd(least, "0");
  return `${/[1-9]/.test(digits) ? sign : ""}${grouped(front)}${back && `.${back}`}`;
}

/** Nanoseconds since the Unix epoch as `2023-06-20 10:59:59.120456` in UTC, with as many digits as say something. */
export function time(ns: string): string {
  if (!/^-?\d{1,19}$/.test(ns)) return ns;
  if (ns === "0") return "not set";
  const all = BigInt(ns);
  const second = 1_000_000_000n;
  const rest = ((all % second) + second) % second;
  const at = new Date(Number((all - rest) / 1_000_000n)).toISOString().slice(0, 19).replace("T", " ");
  const fraction = rest.toString().padStart(9, "0").replace(/0+$/, "");
  return fraction ? `${at}.${fraction}` : at;
}

/** The same without what is below a second. */
export function seconds(ns: string): string {
  return time(ns).slice(0, 19);
}

/** Whether a time is of the current year, which may be left out. */
export function isOfThisYear(ns: string): boolean {
  return time(ns).startsWith(`${new Date().toISOString().slice(0, 4)}-`);
}

/** Milliseconds since the Unix epoch, for drawing and for ages only. */
export function milliseconds(ns: string): number {
  return Number(BigInt(ns) / 1_000_000n);
}

/** The times that a field takes, as `datetime-local` has them: from the Unix epoch to what 64 bits of nanoseconds hold. */
export const TIMES = ["1970-01-01T00:00", "2262-04-11T23:47"] as const;

/** The last nanosecond of 64 bits. */
const LAST_NS = 2n ** 63n - 1n;

/**
 * A time in nanoseconds since the Unix epoch, of a `datetime-local` value, meant as UTC, or of nanoseconds. Empty if the text
 * is; undefined if it is no time, or none of `TIMES`.
 */
export function nanoseconds(text: string): string | undefined {
  if (text === "") return "";
  if (/^\d{1,19}$/.test(text)) return BigInt(text) <= LAST_NS ? text : undefined;
  const at = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?$/.test(text) ? Date.parse(`${text}Z`) : NaN;
  return at >= 0 && at <= Date.parse(`${TIMES[1]}Z`) ? (BigInt(at) * 1_000_000n).toString() : undefined;
}

/** The other way round: nanoseconds as a field for a time has them; empty when they are none. */
export function local(ns: string): string {
  return nanoseconds(ns) === ns && ns !== "0" ? time(ns).slice(0, 19).replace(" ", "T") : "";
}

/** An age as `3 s`, `5 min`, `2 h`, `4 d`. */
export function age(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 90) return `${s} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  if (s < 129_600) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86_400)} d`;
}

/** `1.5 MB`; under 1000 the bytes themselves. */
export function bytes(count: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = count;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 2 : 1)} ${units[unit]}`;
}

/** `1 block`, `2 blocks`. */
export function counted(count: number | bigint, one: string, many = `${one}s`): string {
  return `${grouped(count.toString())} ${Number(count) === 1 ? one : many}`;
}

/** A rate or a time with as many digits as say something. */
export function rough(value: number): string {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  if (Math.abs(value) < 10) return value.toFixed(Math.abs(value) < 1 ? 2 : 1);
  return grouped(Math.round(value).toString());
}

/** A change as `+1.23 %`, without a sign if it is rounded to zero, or nothing when there is nothing to compare with. For the eye only: it is rounded. */
export function change(from: string | undefined, to: string | undefined): string {
  if (!from || !to || BigInt(from) === 0n) return "–";
  const percent = (Number(BigInt(to) - BigInt(from)) / Number(BigInt(from))) * 100;
  const digits = Math.abs(percent).toFixed(2);
  return `${Number(digits) === 0 ? "" : percent < 0 ? "−" : "+"}${digits} %`;
}

/** A large number rounded to three digits: `12.4M`. */
export function compact(value: number): string {
  return new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 }).format(value);
}

/** The time of day of nanoseconds since the Unix epoch, UTC. */
export function clock(ns: string): string {
  return time(ns).slice(11, 19);
}

/** The two ends of a long id. */
export function short(id: string): string {
  return /^(0x)?[0-9a-fA-F]{20,}$/.test(id) ? `${id.slice(0, 8)}…${id.slice(-6)}` : id;
}

/** `ACCOUNT_TYPE_GLOBAL_REWARD` without its beginning as `Global reward`; what is no such name stays as it is. */
export function word(name: string, beginning: string): string {
  if (!name.startsWith(beginning) || !/^[A-Z0-9_]+$/.test(name)) return name;
  const words = name.slice(beginning.length).toLowerCase().replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A text as one word of a POSIX shell. */
export function quoted(text: string): string {
  return /^[A-Za-z0-9_./:=@,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
