// Asking the gateway: answers in the types of its own document, or a Problem that says what its error said.
import { EventSource as FetchedEventSource } from "eventsource";
import { useEffect, useRef, useState } from "preact/hooks";
import type { components } from "./gateway";
import { credentials, hasKey } from "./key";
import { readBlock } from "./route";

export type Schemas = components["schemas"];

/** Longer than any read of the gateway takes. */
const WITHIN_MS = 20_000;

/** A commit waits for a block. */
const SUBMIT_WITHIN_MS = 30_000;

/** How often is asked again what a passing failure kept from being answered. */
const AGAIN_MS = 1000;

export class Problem extends Error {
  constructor(
    /** HTTP status; 0 = the gateway did not answer. */
    readonly status: number,
    /** Number of the reason (contract section 2.2). */
    readonly number: number,
    message: string,
    /** The value meant, or neighbouring valid ones. */
    readonly inner: string,
    readonly requestId: string,
  ) {
    super(message);
  }

  /** Whether the same may be answered later. */
  get isPassing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 502;
  }
}

export type Query = [name: string, value: string][];

/** Whether a read of a view that shows the past can be had as of a block. */
export function hasPast(path: string): boolean {
  return !/^api\/v2\/(assets|ledgerentry)/.test(path);
}

/**
 * A path of the gateway with its query, and with the block that the page is put at. Relative: the gateway may be below any
 * prefix.
 */
export function target(path: string, query: Query = []): string {
  const all: Query = [...query, ["atBlock", hasPast(path) ? readBlock() : ""]];
  const given = all.filter(([, value]) => value !== "");
  const text = given.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
  return text ? `${path}?${text}` : path;
}

/** The same in full, for other programs. */
export function address(relative: string): string {
  return new URL(relative, document.baseURI).href;
}

/** The gateway's own address, without a slash at its end. */
export function gateway(): string {
  return new URL(".", document.baseURI).href.replace(/\/$/, "");
}

/**
 * Headers of a read. A parameter that the gateway does not know is a fault of this page: the gateway refuses it and says so.
 * An older one ignores this.
 */
export const READ = { prefer: "handling=strict", ...credentials };

function within(ms: number, signal?: AbortSignal): AbortSignal {
  const limit = AbortSignal.timeout(ms);
  return signal ? AbortSignal.any([signal, limit]) : limit;
}

/** What went wrong, as a Problem; a request that was taken back throws on. */
export function problemOf(error: unknown, signal?: AbortSignal): Problem {
  if (signal?.aborted) throw error;
  if (error instanceof Problem) return error;
  const isLate = error instanceof DOMException && error.name === "TimeoutError";
  return new Problem(0, 0, isLate ? "the gateway did not answer in time" : "the gateway cannot be reached", "", "");
}

/** The Problem that a body tells. */
export function problemFrom(error: Schemas["Problem"], status: number, id: string): Problem {
  const first = error.details[0];
  const messages = error.details.map((detail) => detail.message).join("; ");
  return new Problem(status, first?.code ?? 0, messages || error.message, first?.inner ?? "", id);
}

/** The Problem of an answer that is an error. */
export async function refusal(response: Response): Promise<Problem> {
  const id = response.headers.get("x-request-id") ?? "";
  try {
    return problemFrom((await response.json()) as Schemas["Problem"], response.status, id);
  } catch {
    return new Problem(response.status, 0, `the gateway answered ${response.status}`, "", id);
  }
}

async function answered<T>(
  request: Promise<Response>,
  signal?: AbortSignal,
  take = (response: Response): T | Promise<T> => response.json(),
): Promise<T> {
  try {
    const response = await request;
    if (!response.ok) throw await refusal(response);
    return await take(response);
  } catch (error) {
    throw problemOf(error, signal);
  }
}

/** Gets an answer. */
export function read<T>(relative: string, signal?: AbortSignal): Promise<T> {
  return answered(fetch(relative, { headers: READ, signal: within(WITHIN_MS, signal) }), signal);
}

/** Opens a stream of events. The browser's own `EventSource` cannot send a key. */
export function openEvents(url: string): EventSource {
  if (!hasKey) return new EventSource(url);
  return new FetchedEventSource(new URL(url, document.baseURI), {
    fetch: (to, init) => fetch(to, { ...init, headers: { ...init.headers, ...READ } }),
  });
}

/** A block by its height and its time, nanoseconds since the Unix epoch. */
export interface Block {
  height: bigint;
  time: bigint;
}

/** Gets the block that an answer is of. */
export function readBlockOf(relative: string, signal?: AbortSignal): Promise<Block> {
  const request = fetch(relative, { headers: READ, signal: within(WITHIN_MS, signal) });
  return answered(request, signal, ({ headers }) => ({
    height: BigInt(headers.get("x-block-height") ?? ""),
    time: BigInt(headers.get("x-block-timestamp") ?? ""),
  }));
}

/** Posts a JSON text. */
export function post<T>(relative: string, body: string): Promise<T> {
  const headers = { "content-type": "application/json", ...credentials };
  return answered(fetch(relative, { method: "POST", body, headers, signal: within(SUBMIT_WITHIN_MS) }));
}

export interface Reading<T> {
  /** The last answer, also while there is none at present. */
  data?: T;
  problem?: Problem;
  isLoading: boolean;
}

/**
 * Reads what a view shows and does not change, once; again after a passing failure. Nothing is read while `relative` is
 * undefined.
 */
export function useRead<T>(relative: string | undefined, get: typeof read<T> = read): Reading<T> {
  const [state, setState] = useState<{ of?: string; data?: T; problem?: Problem; isLoading: boolean }>({
    isLoading: relative !== undefined,
  });
  const timer = useRef(0);
  useEffect(() => {
    if (relative === undefined) {
      setState({ isLoading: false });
      return undefined;
    }
    const gone = new AbortController();
    const ask = async () => {
      try {
        const data = await get(relative, gone.signal);
        setState({ of: relative, data, isLoading: false });
      } catch (error) {
        if (!(error instanceof Problem)) return;
        setState({ of: relative, problem: error, isLoading: false });
        if (error.isPassing) timer.current = window.setTimeout(ask, AGAIN_MS);
      }
    };
    setState({ isLoading: true });
    void ask();
    return () => {
      gone.abort();
      clearTimeout(timer.current);
    };
  }, [relative]);
  // Between two addresses the last answer is that of another question.
  const current = state.of === relative || relative === undefined ? state : { isLoading: true };
  return { data: current.data, problem: current.problem, isLoading: current.isLoading };
}
