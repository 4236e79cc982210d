// What markets and assets are called and how their figures are scaled: one read of all of them, which
// everything that is shown shares, and a watch where they are few. Without it, ids are shown as they are.
import { useEffect, useState } from "preact/hooks";
import { Problem, read, target, type Schemas } from "./api";
import { short, word } from "./format";
import { onRoute, readBlock } from "./route";
import { watch } from "./watch";

export type Market = Schemas["Market"];
export type Asset = Schemas["Asset"];

/** So many of a kind are read at most: pages, and rows of each. */
const PAGES = 5;
const PAGE = 1000;

/** So many are watched at most: the figures of markets are in the same answer, which is another one with every block. */
const WATCHED = 50;

/** How often more of them are read again; how soon when an unknown id is shown; and after a failure. */
const EVERY_MS = 60_000;
const SOON_MS = 10_000;
const AGAIN_MS = 2000;

/** Characters of a name that are shown. */
const LABEL = 40;

/** Something with its name. */
export interface Named<Row> {
  id: string;
  row: Row;
  /** The name as it is shown, without characters that cannot be seen; empty when there is none. */
  label: string;
  /** The full name, likewise. */
  name: string;
  /** Whether the name alone may be taken for another one's, so that the id has to stand beside it. */
  isShared: boolean;
  /** What stands for it where there is only text. */
  text: string;
  /** More of it on asking: id and full name. */
  title: string;
  /** Where it stands. */
  state: string;
  /** What it may be searched by, in lower case. */
  words: string[];
}

/** What a search means: an id, or why it has none. */
export interface Found {
  id?: string;
  problem?: string;
  /** The first of several that match. */
  first?: string;
}

const HEX = /^[0-9a-fA-F]{64}$/;

/** A name as it can be shown: on one line, without controls that turn or hide text, and not too long. */
export function labelOf(name: string, most = LABEL): string {
  const clean = name.slice(0, 10 * most).replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/gu, "").replace(/\s+/gu, " ").trim();
  const letters = [...clean];
  return letters.length > most ? `${letters.slice(0, most).join("")}…` : clean;
}

/** Names of which this is the same look alike. */
function look(name: string): string {
  return name.normalize("NFKC").toLowerCase().replace(/[^\p{L}\p{N}\p{S}\p{P}]/gu, "");
}

/** Everything of one kind by its id. */
export class Register<Row extends { id: string }> {
  known: ReadonlyMap<string, Named<Row>> = new Map();
  isRead = false;
  problem?: Problem;
  /** Whether there are more than are read. */
  isCut = false;
  private readonly listeners = new Set<() => void>();
  private readonly wanted = new Set<string>();
  private readonly unknown = new Set<string>();
  private timer = 0;
  /** Rises with every read. */
  private turn = 0;
  private at = -Infinity;
  private isReading = false;
  /** Ends the watch of all of them. */
  private leave?: () => void;
  /** The request of what is known: it names the block. */
  private source: string;

  constructor(
    readonly one: string,
    private readonly path: string,
    private readonly pageOf: (answer: never) => { edges: { node: Row }[]; pageInfo: Schemas["PageInfo"] },
    private readonly namesOf: (row: Row) => [label: string, name: string],
    private readonly stateOf: (row: Row) => string,
    /** What an id looks like. */
    private readonly form: RegExp,
    /** States in the order in which they are listed. */
    private readonly states: readonly string[],
  ) {
    this.source = this.page("");
    document.addEventListener("visibilitychange", () => this.schedule());
    onRoute(() => this.moved());
  }

  /** Whether the rows are few enough to be watched; the figures of others are up to a minute old. */
  get isSmall(): boolean {
    return !this.isCut && this.known.size <= WATCHED;
  }

  /** The register as it is now, for as long as a view shows it. */
  useAll(): this {
    const [shown, show] = useState(this.turn);
    useEffect(() => {
      const tell = () => show(this.turn);
      // It may have been read since this was drawn.
      if (shown !== this.turn) tell();
      this.listeners.add(tell);
      this.schedule();
      return () => {
        this.listeners.delete(tell);
        this.schedule();
      };
    }, []);
    return this;
  }

  /** What has this id. */
  use(id: string): Named<Row> | undefined {
    this.useAll();
    const found = this.known.get(id);
    const isUnknown = id !== "" && !found;
    useEffect(() => {
      if (isUnknown) this.want(id);
    }, [id, isUnknown]);
    return found;
  }

  /** Those in which this text occurs, all of them for none: by state, then by name. */
  matching(text: string): Named<Row>[] {
    const part = text.trim().toLowerCase();
    const found = [...this.known.values()].filter((one) => one.words.some((word) => word.includes(part)));
    const rank = ({ state }: Named<Row>) => {
      const place = this.states.indexOf(state);
      return place < 0 ? this.states.length : place;
    };
    return found.sort((one, other) => rank(one) - rank(other) || (one.text < other.text ? -1 : 1));
  }

  /** The id that a text means: an id itself, a name, or the only one in which it occurs. */
  find(text: string): Found {
    const part = text.trim();
    if (part === "") return { id: "" };
    const known = this.known.get(part) ?? this.known.get(part.toLowerCase());
    if (known) return { id: known.id };
    if (HEX.test(part)) return { id: part };
    const all = this.matching(part);
    const same = all.filter((one) => one.words.includes(part.toLowerCase()));
    const meant = same.length > 0 ? same : all;
    if (meant.length > 1) {
      return { problem: `${meant.length} ${this.one}s match; Enter takes ${meant[0]!.text}`, first: meant[0]!.id };
    }
    if (meant[0]) return { id: meant[0].id };
    if (this.form.test(part)) return { id: part };
    const One = this.one.charAt(0).toUpperCase() + this.one.slice(1);
    return { problem: this.isRead ? `No ${this.one} found` : `${One} id: 64 hex digits expected` };
  }

  private want(id: string): void {
    if (this.unknown.has(id) || this.known.has(id)) return;
    this.wanted.add(id);
    this.schedule();
  }

  /** The page may be put at another block, as of which nothing is known. */
  private moved(): void {
    const source = this.page("");
    if (source !== this.source) {
      this.source = source;
      this.known = new Map();
      this.isRead = false;
      this.problem = undefined;
      this.at = -Infinity;
      this.wanted.clear();
      this.unknown.clear();
      this.leave?.();
      this.leave = undefined;
    }
    this.schedule();
  }

  private schedule(): void {
    clearTimeout(this.timer);
    const isPast = readBlock() !== "";
    const isFew = !isPast && this.isRead && this.isSmall;
    if (this.listeners.size === 0 || !isFew) {
      this.leave?.();
      this.leave = undefined;
    }
    if (this.listeners.size === 0) return;
    if (isFew) {
      this.leave ??= watch<never>(this.page(""), EVERY_MS, (answer, problem) => this.watched(answer, problem));
      return;
    }
    if (isPast && this.isRead) return;
    if (this.isReading || document.visibilityState !== "visible") return;
    const isFailed = this.problem?.isPassing ?? false;
    const pause = isFailed ? AGAIN_MS : this.wanted.size > 0 ? SOON_MS : EVERY_MS;
    this.timer = window.setTimeout(() => void this.read(), Math.max(0, this.at + pause - performance.now()));
  }

  private async read(): Promise<void> {
    this.isReading = true;
    this.at = performance.now();
    const wanted = [...this.wanted];
    const { source } = this;
    try {
      const rows = await this.rows();
      if (source !== this.source) return;
      this.take(rows);
      for (const id of wanted) {
        this.wanted.delete(id);
        // It is not looked for again before the next turn.
        if (!this.known.has(id)) this.unknown.add(id);
      }
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (source === this.source) this.problem = error;
    } finally {
      this.isReading = false;
      this.tell();
    }
  }

  /** What the watch of a small register brings. */
  private watched(answer: never | undefined, problem: Problem | undefined): void {
    if (answer !== undefined && !problem) {
      const { edges, pageInfo } = this.pageOf(answer);
      this.isCut = pageInfo.hasNextPage;
      this.take(edges.map((edge) => edge.node));
    }
    this.problem = problem;
    this.tell();
  }

  private take(rows: Row[]): void {
    this.known = this.named(rows);
    this.isRead = true;
    this.problem = undefined;
  }

  private tell(): void {
    this.turn += 1;
    this.schedule();
    this.listeners.forEach((tell) => tell());
  }

  private page(after: string): string {
    return target(this.path, [
      ["pagination.first", String(PAGE)],
      ["pagination.newestFirst", "false"],
      ["pagination.after", after],
    ]);
  }

  private async rows(): Promise<Row[]> {
    const rows: Row[] = [];
    let after = "";
    for (let page = 0; page < PAGES; page += 1) {
      const { edges, pageInfo } = this.pageOf(await read<never>(this.page(after)));
      for (const { node } of edges) rows.push(node);
      this.isCut = pageInfo.hasNextPage;
      if (!pageInfo.hasNextPage) break;
      after = pageInfo.endCursor;
    }
    return rows;
  }

  private named(rows: Row[]): Map<string, Named<Row>> {
    const looks = new Map<string, Set<string>>();
    const seen = (name: string, id: string) => {
      const key = look(name);
      looks.set(key, (looks.get(key) ?? new Set()).add(id));
    };
    const labels = rows.map((row) => labelOf(this.namesOf(row)[0]));
    rows.forEach((row, at) => {
      seen(labels[at]!, row.id);
      seen(row.id, row.id);
    });
    const named = rows.map((row, at): Named<Row> => {
      const { id } = row;
      const label = look(labels[at]!) ? labels[at]! : "";
      // A name that looks like an id is not to be taken for one.
      const isShared = looks.get(look(label))!.size > 1 || /\.{3}|[0-9a-f]{12}/i.test(label.normalize("NFKC"));
      const text = label === "" ? short(id) : isShared && label !== id ? `${label} ${short(id)}` : label;
      const name = labelOf(this.namesOf(row)[1]);
      const words = [text, label, name, id].filter(Boolean).map((word) => word.toLowerCase());
      return {
        id, row, label, name, text, words, isShared: isShared && label !== id, title: `${id}\n${name}`.trim(), state: this.stateOf(row),
      };
    });
    return new Map(named.map((one) => [one.id, one]));
  }
}

/** That of markets or that of assets: whoever searches by names does not mind which. */
export type AnyRegister = Register<any>;

export const markets = new Register<Market>(
  "market",
  "api/v2/markets",
  (answer: Schemas["ListMarketsReply"]) => answer.markets,
  (market) => [market.code, market.name],
  (market) => word(market.state, "STATE_"),
  HEX,
  ["Active", "Suspended", "Pending", "Proposed", "Trading terminated", "Closed", "Settled", "Cancelled", "Rejected"],
);

export const assets = new Register<Asset>(
  "asset",
  "api/v2/assets",
  (answer: Schemas["ListAssetsReply"]) => answer.assets,
  (asset) => [asset.symbol, asset.name],
  (asset) => word(asset.status, "STATUS_"),
  /^[A-Za-z0-9_-]{1,64}$/,
  ["Enabled", "Pending listing", "Proposed", "Rejected"],
);
