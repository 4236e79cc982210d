// What the open page shows is watched on one stream of events (`/watch`), with the height of the chain beside it. Where
// a stream is refused, or other pages of the browser have all of them, its reads are polled until a stream is free.
import { useCallback, useEffect, useState } from "preact/hooks";
import { openEvents, problemFrom, problemOf, read, useRead, type Problem, type Reading, type Schemas } from "./api";
import { openChannel, Places, PLACES } from "./places";
import { onRoute, readBlock } from "./route";

/** The read whose answer is another one with every block. */
export const HEAD = "blockchain/height";

/** How often it, and a list, is asked for where there is no stream. */
export const HEAD_MS = 1000;
const LIST_MS = 2000;

/** Reads of one stream at most; what is beyond them is asked for. */
const READS = 16;

/** Views that come and go change the reads one after the other: one stream is opened for all of it. */
const SETTLED_MS = 30;

/** A stream that has not begun by then may be held up: its reads are asked for beside it. */
const BEGUN_WITHIN_MS = 2500;

/** How often is looked whether something is to be asked for, and what is asked for again after a failure. */
const TICK_MS = 1000;

/** The least pause between two reads while they are over a limit. */
const LIMITED_MS = 5000;

/** When a refused stream is tried again: later each time, up to the second. */
const TRY_MS = [5000, 60_000] as const;

/** A hidden page closes its stream after this. */
const HIDDEN_MS = 3000;

/** A page is not loaded again sooner than this after it was loaded. */
const RELOAD_MS = 5000;

/** Without a block for so long, what is shown is not called live. */
const HEAD_WITHIN_MS = 10_000;

/** After so long without a block another stream is taken, at most once in this time. */
const SILENT_MS = 30_000;

/** A stream that ends and comes back within this is not called lost: a gateway is replaced so. */
const BACK_WITHIN_MS = 2500;

/** The HTTP status of a canonical RPC status code, of those that an event can have. */
const STATUS_OF_CODE: Record<number, number> = { 3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 12: 501, 13: 500, 16: 401 };

type Head = Schemas["LastBlockHeightReply"];

/** A read that is watched. */
interface Topic {
  relative: string;
  tells: Set<() => void>;
  data?: unknown;
  problem?: Problem;
  /** How often it is asked for while no stream has it. */
  everyMs: number;
  askedAt: number;
  isAsked: boolean;
  /** Whether it is refused for what it is, so that asking again is of no use. */
  isRefused: boolean;
  /** Whether it had no answer, or 404, when it was last read: it would refuse the others on its stream, too. */
  isFailing: boolean;
}

/** A stream that is open or opening. */
interface Stream {
  source: EventSource;
  topics: Topic[];
  /** Those of which nothing has come yet. */
  missing: Set<Topic>;
  since: number;
  /** When it was lost; nothing while it is there. */
  lostAt?: number;
}

/** How the page gets to know what is new. */
export type State = "connecting" | "live" | "behind" | "lost";

export interface Condition {
  state: State;
  said: string;
}

const topics = new Map<string, Topic>();
const conditionTells = new Set<() => void>();

/** The stream that is shown, and the one that takes its place once its first answers are there. */
let shown: Stream | undefined;
let next: Stream | undefined;
let settling = 0;
let trying = 0;
let hiding = 0;
let refusals = 0;
let headAt = 0;
let isPast = readBlock() !== "";
/** The chain that this page has data of. */
let chain = "";
const places = new Places(openChannel(), () => isMisplaced() && settle());
let condition: Condition = { state: "connecting", said: "Connecting" };

/** Watches a read until the function that it returns is called. */
function follow(relative: string, everyMs: number, tell: () => void): () => void {
  const topic = topics.get(relative) ?? {
    relative, everyMs, tells: new Set(), askedAt: -Infinity, isAsked: false, isRefused: false, isFailing: false,
  };
  topics.set(relative, topic);
  topic.tells.add(tell);
  settle();
  return () => {
    topic.tells.delete(tell);
    settle();
  };
}

function settle(): void {
  clearTimeout(settling);
  settling = window.setTimeout(arrange, SETTLED_MS);
}

/** Whether this page has a stream without a place for it, or the other way round. */
function isMisplaced(): boolean {
  return (shown ?? next) !== undefined !== places.isFree;
}

/** What is to be on the stream. */
function wanted(): Topic[] {
  return [...topics.values()].filter((topic) => !topic.isRefused && !topic.isFailing).slice(0, READS);
}

function isOf(stream: Stream | undefined, list: Topic[]): boolean {
  return stream?.topics.length === list.length && list.every((topic) => stream.topics.includes(topic));
}

/** Opens a stream when what is to be watched is on none. */
function arrange(): void {
  for (const topic of topics.values()) {
    if (topic.tells.size === 0) topics.delete(topic.relative);
  }
  if (!isFollowing()) return;
  places.enter();
  if (!places.isFree) {
    closeAll();
    return;
  }
  const list = wanted();
  if (isOf(shown, list)) {
    close(next);
    next = undefined;
  } else if (!isOf(next, list) && list.length > 0 && trying === 0) open(list);
}

function close(stream: Stream | undefined): void {
  stream?.source.close();
}

function closeAll(): void {
  close(shown);
  close(next);
  [shown, next] = [undefined, undefined];
  weigh();
}

function open(list: Topic[]): void {
  close(next);
  const query = list.map(({ relative }) => `read=${encodeURIComponent(`/${relative}`)}`).join("&");
  const source = openEvents(`watch?${query}`);
  const stream: Stream = { source, topics: list, missing: new Set(list), since: performance.now() };
  next = stream;
  list.forEach((topic, index) => {
    source.addEventListener(`answer-${index}`, (event) => take(stream, topic, { data: JSON.parse((event as MessageEvent<string>).data) }));
    source.addEventListener(`problem-${index}`, (event) => {
      const body = JSON.parse((event as MessageEvent<string>).data) as Schemas["Problem"];
      take(stream, topic, { problem: problemFrom(body, STATUS_OF_CODE[body.code] ?? 503, "") });
    });
  });
  source.onopen = () => {
    stream.lostAt = undefined;
    weigh();
  };
  source.onerror = () => {
    if (source.readyState === EventSource.CLOSED) refused(stream);
    else stream.lostAt ??= performance.now();
    weigh();
  };
  weigh();
}

/** What has come of a read, by a stream or by asking. */
function take(stream: Stream | undefined, topic: Topic, come: { data?: unknown; problem?: Problem }): void {
  if (topics.get(topic.relative) !== topic || (stream && stream !== shown && stream !== next)) return;
  if (topic.relative === HEAD && !come.problem) takeHead(come.data as Head, topic.data as Head | undefined);
  topic.problem = come.problem;
  if (!come.problem) topic.data = come.data;
  if (stream) begun(stream, topic);
  topic.tells.forEach((tell) => tell());
  weigh();
}

/** Takes a head. If its chain differs from the one before, the network was reset: all data of the page is outdated. */
function takeHead(head: Head, before: Head | undefined): void {
  if (head.height !== before?.height) headAt = performance.now();
  if (chain && head.chainId && head.chainId !== chain) {
    setTimeout(() => location.reload(), Math.max(0, RELOAD_MS - performance.now()));
  }
  chain = head.chainId || chain;
}

/** The first answers of a stream are there: the one before it has done its work. */
function begun(stream: Stream, topic: Topic): void {
  stream.missing.delete(topic);
  if (stream !== next || stream.missing.size > 0) return;
  close(shown);
  [shown, next] = [stream, undefined];
  refusals = 0;
}

/** A stream is refused for good, or was cut by something that answers in the gateway's place. */
function refused(stream: Stream): void {
  if (stream === shown) shown = undefined;
  if (stream === next) next = undefined;
  clearTimeout(trying);
  const pause = Math.min(TRY_MS[0] * 2 ** refusals, TRY_MS[1]);
  refusals += 1;
  trying = window.setTimeout(() => {
    // It may be the stream of this page that leaves no room for another one.
    if (!isOf(shown, wanted())) {
      close(shown);
      shown = undefined;
    }
    again();
  }, pause);
  ask();
}

function again(): void {
  clearTimeout(trying);
  trying = 0;
  arrange();
}

function isCarried(topic: Topic): boolean {
  if (shown?.topics.includes(topic) && !shown.missing.has(topic)) return true;
  const isOpening = next?.topics.includes(topic) && performance.now() - next.since < BEGUN_WITHIN_MS;
  return isOpening || (trying === 0 && !next && places.isFree && wanted().includes(topic));
}

/** Asks for what no stream has. */
function ask(): void {
  if (!isFollowing()) return;
  const now = performance.now();
  for (const topic of topics.values()) {
    if (isDue(topic, now, headAt) && !topic.isAsked && !topic.isRefused && !isCarried(topic)) void askFor(topic);
  }
}

/** Whether a read is to be sent again. What does not exist may exist after another block, and only then. */
export function isDue(topic: Pick<Topic, "relative" | "problem" | "everyMs" | "askedAt">, now: number, headAt: number): boolean {
  const status = topic.problem?.status;
  if (status === 404 && topic.relative !== HEAD) return topic.askedAt < headAt;
  const pause = status === 429 ? Math.max(topic.everyMs, LIMITED_MS) : topic.problem ? TICK_MS : topic.everyMs;
  // The clock that calls this is not exact.
  return now - topic.askedAt > pause - TICK_MS / 4;
}

async function askFor(topic: Topic): Promise<void> {
  [topic.isAsked, topic.askedAt] = [true, performance.now()];
  const wasFailing = topic.isFailing;
  try {
    const data = await read<unknown>(topic.relative);
    topic.isFailing = false;
    if (!isCarried(topic)) take(undefined, topic, { data });
  } catch (error) {
    const problem = problemOf(error);
    // Only the gateway itself refuses a read for good, and with a number: a proxy answers in its place while it restarts.
    const isAnswered = problem.number !== 0 && !problem.isPassing;
    topic.isRefused = isAnswered && problem.status < 500 && problem.status !== 404;
    topic.isFailing = problem.status >= 500 || (isAnswered && problem.status === 404);
    if (topic.isRefused || !isCarried(topic)) take(undefined, topic, { problem });
  } finally {
    topic.isAsked = false;
  }
  // A read without an answer refuses the others on its stream: the others continue without it until it has one.
  if (topic.isRefused || topic.isFailing !== wasFailing) again();
}

/** Takes another stream for one that brings nothing: what lies between may have lost it without a word. */
function renew(): void {
  if (!shown || next || trying !== 0 || !isFollowing()) return;
  const isSilent = performance.now() - Math.max(headAt, shown.since) > SILENT_MS;
  const isWell = shown.lostAt === undefined && ![...topics.values()].some((topic) => topic.problem?.isPassing);
  if (isSilent && isWell) open(wanted());
}

/** Recomputes the condition, and notifies its listeners of a change. */
function weigh(): void {
  const found = weighed();
  if (found.state === condition.state && found.said === condition.said) return;
  condition = found;
  conditionTells.forEach((tell) => tell());
}

function weighed(): Condition {
  const now = performance.now();
  const stream = shown ?? next;
  const isAway = [...topics.values()].some((topic) => topic.problem?.status === 0);
  const isLost = stream?.lostAt !== undefined && now - stream.lostAt > BACK_WITHIN_MS;
  if (isLost || isAway) return { state: "lost", said: "Lost: the gateway does not answer" };
  const unanswered = [...topics.values()].find((topic) => topic.problem?.isPassing);
  if (unanswered) return { state: "behind", said: `Behind: ${unanswered.problem!.message}` };
  if (!shown && !places.isFree && isFollowing()) {
    return { state: "behind", said: `Behind: ${PLACES} other windows have the live updates; polling instead` };
  }
  if (!shown && refusals > 0) return { state: "behind", said: "Behind: live updates are refused; polling instead" };
  if (!shown) return { state: "connecting", said: "Connecting" };
  if (now - headAt > HEAD_WITHIN_MS) return { state: "behind", said: "Behind: no new block for 10 s" };
  return { state: "live", said: "Live" };
}

/** Ends all streams, until the page is shown again. */
function leave(): void {
  clearTimeout(trying);
  trying = 0;
  places.leave();
  closeAll();
}

/** Whether what is shown is to be new: a hidden page and a page of the past wait. */
function isFollowing(): boolean {
  return document.visibilityState === "visible" && !isPast;
}

/** The page is hidden, shown again, put at a block of the past, or back at now. */
function turn(): void {
  clearTimeout(hiding);
  if (isPast) {
    leave();
    return;
  }
  if (document.visibilityState === "visible") {
    places.enter();
    headAt = performance.now();
    again();
    ask();
    return;
  }
  hiding = window.setTimeout(leave, HIDDEN_MS);
}

document.addEventListener("visibilitychange", turn);
onRoute(() => {
  if (isPast === (readBlock() !== "")) return;
  isPast = !isPast;
  turn();
});
// A browser may keep a page that is left, with its connections, of which there are six.
addEventListener("pagehide", leave);
addEventListener("pageshow", (event) => event.persisted && turn());
// Once a second, so that silence is noticed; nothing is asked for while a stream brings it.
setInterval(tick, TICK_MS);
if (isFollowing()) places.enter();
follow(HEAD, HEAD_MS, () => undefined);

function tick(): void {
  places.announce();
  // A page that is killed gives up its place without a message.
  if (isMisplaced()) arrange();
  ask();
  renew();
  weigh();
}

/**
 * Watches a read for as long as a view is shown; nothing while `relative` is undefined. Where it cannot be watched it is asked
 * for every `everyMs`. A page of the past reads it once.
 */
export function useWatch<T>(relative: string | undefined, everyMs = LIST_MS): Reading<T> {
  const once = useRead<T>(isPast ? relative : undefined);
  const followed = useFollowed<T>(isPast ? undefined : relative, everyMs);
  return isPast ? once : followed;
}

function useFollowed<T>(relative: string | undefined, everyMs: number): Reading<T> {
  const [, setTurn] = useState(0);
  const tell = useCallback(() => setTurn((turn) => turn + 1), []);
  useEffect(() => {
    if (relative === undefined) return undefined;
    const leave = follow(relative, everyMs, tell);
    tell();
    return leave;
  }, [relative]);
  const topic = relative === undefined ? undefined : topics.get(relative);
  const isLoading = relative !== undefined && topic?.data === undefined && topic?.problem === undefined;
  return { data: topic?.data as T | undefined, problem: topic?.problem, isLoading };
}

/** Watches a read outside of a view: `tell` gets each answer, or why there is none. */
export function watch<T>(relative: string, everyMs: number, tell: (data: T | undefined, problem?: Problem) => void): () => void {
  return follow(relative, everyMs, () => {
    const topic = topics.get(relative);
    if (topic) tell(topic.data as T | undefined, topic.problem);
  });
}

/** How the page gets to know what is new. */
export function useCondition(): Condition {
  const [, setTurn] = useState(0);
  useEffect(() => {
    const tell = () => setTurn((turn) => turn + 1);
    conditionTells.add(tell);
    tell();
    return () => void conditionTells.delete(tell);
  }, []);
  return condition;
}
