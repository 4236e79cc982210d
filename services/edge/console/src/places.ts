// At most four pages of a browser have a stream: over HTTP/1.1 all pages share six connections to a gateway. Each page
// announces once a second since when it wants a stream, and the first four have one.

/** Streams of a browser at most: two connections remain for all other requests. */
export const PLACES = 4;

/** A page that was not heard for so long has no claim: it was killed. */
export const HEARD_WITHIN_MS = 5000;

/** Other pages that are remembered at most. */
const PAGES = 100;

/** A page that wants a stream, and since when, in milliseconds since the Unix epoch. */
export interface Claim {
  id: string;
  since: number;
}

/** What a page sends to the others: its claim, or none. `asks`: the others answer with theirs. */
interface Said {
  id: string;
  since?: number;
  asks?: boolean;
}

/** Whether a page is among the first ones. */
export function isFirst(own: Claim, others: Claim[]): boolean {
  const isBefore = ({ id, since }: Claim) => since < own.since || (since === own.since && id < own.id);
  return others.filter(isBefore).length < PLACES;
}

/** The places of this page and of the others. Without a channel this page always has one. */
export class Places {
  #own: Claim | undefined;
  #others = new Map<string, Claim & { heardAt: number }>();

  /** `changed` is called when another page was heard. */
  constructor(
    readonly channel: BroadcastChannel | undefined,
    readonly changed: () => void,
    readonly id = Math.random().toString(36).slice(2),
  ) {
    if (channel) channel.onmessage = ({ data }: MessageEvent<Said>) => this.#hear(data);
  }

  /** Whether this page may have a stream. */
  get isFree(): boolean {
    if (!this.channel) return true;
    for (const [id, { heardAt }] of this.#others) {
      if (performance.now() - heardAt > HEARD_WITHIN_MS) this.#others.delete(id);
    }
    return this.#own !== undefined && isFirst(this.#own, [...this.#others.values()]);
  }

  /** Claims a place; nothing changes if this page has a claim. */
  enter(): void {
    if (this.#own) return;
    this.#own = { id: this.id, since: Date.now() };
    this.announce(true);
  }

  /** Gives the claim up. */
  leave(): void {
    if (this.#own) this.channel?.postMessage({ id: this.id } satisfies Said);
    this.#own = undefined;
  }

  /** To be called once a second. */
  announce(asks = false): void {
    if (this.#own) this.channel?.postMessage({ ...this.#own, asks } satisfies Said);
  }

  #hear({ id, since, asks }: Said): void {
    if (since === undefined) this.#others.delete(id);
    else if (this.#others.has(id) || this.#others.size < PAGES) this.#others.set(id, { id, since, heardAt: performance.now() });
    // An answer asks for none, so one page that comes causes one message of each other page.
    if (asks) this.announce();
    this.changed();
  }
}

/** The channel of the pages of this browser; none over HTTP/2 and later, where requests share one connection. */
export function openChannel(): BroadcastChannel | undefined {
  const [loaded] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
  const isShared = /^h[23]/.test(loaded?.nextHopProtocol ?? "");
  return isShared || !("BroadcastChannel" in globalThis) ? undefined : new BroadcastChannel("tradewind-streams");
}
