// Export: the sealed history as a map, a range of it as a file, its tables, and a party's ledger.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { READ, address, gateway, problemOf, refusal, target, useRead, type Problem, type Query, type Schemas } from "../api";
import { digestOf, hexOf } from "../crc32c";
import { age, bytes, counted, grouped, quoted, word } from "../format";
import { secondsPerBlock } from "../live";
import { Card, Choice, Empty, Facts, Id, Lines, Notice, Select, ViewLink } from "../parts";
import { go, link, type Route } from "../route";
import { useSubject } from "../title";
import { Transfer } from "../transfer";
import { HEAD, HEAD_MS, useWatch } from "../watch";
import { Datasets } from "./datasets";
import { Ledger } from "./ledger";
import { SegmentMap, type Segment } from "./segments";

const EXPORT = "api/v2/networkhistory/export";

const USUAL = "TABLE_TRADES";

const KINDS = [
  ["history", "History"],
  ["tables", "Tables"],
  ["ledger", "Ledger of a party"],
] as const;

/** How often is looked whether a segment was sealed. */
const EVERY_MS = 5000;

/** A range that is being dragged is asked for when it rests. */
const RESTS_MS = 150;

export function Export(props: { route: Route }) {
  const { route } = props;
  const [kind, title] = KINDS.find(([kind]) => kind === route.path[1]) ?? KINDS[0];
  useSubject(kind === "history" ? "" : title);
  return (
    <>
      <Choice label="What to export" of={KINDS} value={kind} onChoose={(kind) => go(kind === "history" ? "export" : `export/${kind}`)} />
      {kind === "history" && <History query={route.query} />}
      {kind === "tables" && <Datasets query={route.query} />}
      {kind === "ledger" && <Ledger query={route.query} />}
    </>
  );
}

function History(props: { query: URLSearchParams }) {
  const { query } = props;
  const { data, problem } = useWatch<Schemas["ListAllNetworkHistorySegmentsReply"]>("api/v2/networkhistory/segments", EVERY_MS);
  const { tables, problem: unlisted } = useTables();
  const segments = useMemo<Segment[]>(
    () =>
      (data?.segments ?? [])
        .map((segment) => ({ ...segment, from: BigInt(segment.fromHeight), to: BigInt(segment.toHeight) }))
        .sort((one, other) => (one.from < other.from ? -1 : 1)),
    [data],
  );
  const asked = query.get("table") ?? "";
  const table = tables?.find(([name]) => name === asked)?.[0] ?? USUAL;
  const newest = segments.at(-1);
  const isChosen = query.has("from") || query.has("to");
  useEffect(() => {
    // What is looked at stays the same when another segment is sealed.
    if (newest && tables && !isChosen) go("export", { table: asked || table, from: newest.fromHeight, to: newest.toHeight }, true);
  }, [newest, isChosen, tables, table, asked]);
  const unread = (data ? undefined : problem) ?? (tables ? undefined : unlisted);
  if (unread) return <Notice problem={unread} />;
  if (!data || !tables) return <Empty>Loading…</Empty>;
  if (segments.length === 0) {
    return <Empty>No sealed history yet. The first segment is sealed when all of its blocks, 1000 by default, are stored.</Empty>;
  }
  const given = (name: string) => query.get(name) ?? "";
  // A file has whole segments.
  const at = (name: string) => {
    const height = /^\d{1,19}$/.test(given(name)) ? BigInt(given(name)) : -1n;
    const found = segments.findIndex(({ from, to }) => from <= height && height <= to);
    return found < 0 ? segments.length - 1 : found;
  };
  const first = at("from");
  const last = Math.max(first, at("to"));
  const isOther = (name: string, shown: string) => given(name) !== "" && given(name) !== shown;
  const replaced = [
    (isOther("from", segments[first]!.fromHeight) || isOther("to", segments[last]!.toHeight)) &&
      "The blocks of the link are not those of whole sealed segments, so other blocks are shown.",
    isOther("table", table) && "The table of the link does not exist, so another one is shown.",
  ];
  const choose = (change: { first?: number; last?: number; table?: string }) => {
    const [one, other] = [change.first ?? first, change.last ?? last];
    const [from, to] = [segments[Math.min(one, other)]!, segments[Math.max(one, other)]!];
    go("export", { table: change.table ?? table, from: from.fromHeight, to: to.toHeight }, true);
  };
  return (
    <>
      {replaced.map((line) => line && <Empty key={line}>{line}</Empty>)}
      <Chosen segments={segments} tables={tables} table={table} first={first} last={last} choose={choose} />
    </>
  );
}

/** A value and its label. */
type Option = [string, string];

/** The part of the gateway's document that is read here. */
interface Document {
  components: { schemas: { Table?: { enum: string[] } } };
}

/** The tables that can be exported, by label, as the gateway's document lists them. */
function useTables(): { tables?: Option[]; problem?: Problem } {
  const { data, problem } = useRead<Document>("openapi.json");
  const tables = useMemo(() => {
    const options = data?.components.schemas.Table?.enum.map((name): Option => [name, word(name, "TABLE_")]);
    return options?.sort(([, one], [, other]) => (one < other ? -1 : 1));
  }, [data]);
  return { tables, problem };
}

function Chosen(props: {
  segments: Segment[];
  tables: Option[];
  table: string;
  first: number;
  last: number;
  choose: (change: { first?: number; last?: number; table?: string }) => void;
}) {
  const { segments, tables, table, first, last, choose } = props;
  const [from, to] = [segments[first]!, segments[last]!];
  const query: Query = [
    ["fromBlock", from.fromHeight],
    ["toBlock", to.toHeight],
    ["table", table],
  ];
  const relative = target(EXPORT, query);
  const { file, problem } = useHead(relative);
  const held = segments.reduce((sum, segment) => sum + segment.to - segment.from + 1n, 0n);
  const short = table.replace("TABLE_", "").toLowerCase();
  const name = file?.name || `${short}.zip`;
  const ends = (edge: "fromHeight" | "toHeight", rows: Segment[], base: number) =>
    rows.map((segment, row) => [String(base + row), grouped(segment[edge])] as [string, string]);
  return (
    <>
      <Card
        title="Sealed history"
        aside={
          <span class="dim">
            {counted(segments.length, "segment")}, {counted(held, "block")}
          </span>
        }
      >
        <p data-sealed={segments.at(-1)!.toHeight}>
          <Freshness newest={segments.at(-1)!} />
        </p>
        <SegmentMap segments={segments} first={first} last={last} onChoose={(first, last) => choose({ first, last })} />
        <div class="filters">
          <Select label="Table" value={table} of={tables} onChoose={(table) => choose({ table })} />
          <Select
            label="From block"
            value={String(first)}
            of={ends("fromHeight", segments.slice(0, last + 1), 0)}
            onChoose={(value) => choose({ first: Number(value) })}
          />
          <Select
            label="To block"
            value={String(last)}
            of={ends("toHeight", segments.slice(first), first)}
            onChoose={(value) => choose({ last: Number(value) })}
          />
          <button type="button" onClick={() => choose({ first: 0, last: segments.length - 1 })}>
            Everything
          </button>
        </div>
        <p>
          <a href={link("export/tables", { table })}>Columns of this table</a>
        </p>
      </Card>
      <Card title="The file">
        {problem && <Notice problem={problem} />}
        <Facts
          of={[
            ["Blocks", `${grouped(from.fromHeight)} – ${grouped(to.toHeight)}`],
            ["Rows", <span data-rows={file?.rows}>{file ? grouped(file.rows) : "–"}</span>],
            ["Size", <span data-bytes={file?.length}>{file ? bytes(file.length) : "–"}</span>],
            ["CRC-32C", file?.digest ? <Checksum of={file.digest} /> : "–"],
            ["Name", file ? <bdi class="hostile">{file.name}</bdi> : "–"],
            ["Last segment", <Id id={to.historySegmentId} />],
          ]}
        />
        <Transfer key={relative} url={relative} fileName={name} isReady={file !== undefined} isResumable />
        <Lines
          of={[
            { name: "curl", text: `curl -C - -o ${quoted(name)} ${quoted(address(relative))}` },
            {
              name: "mesh",
              text: `mesh export ${short} --from-block ${from.fromHeight} --to-block ${to.toHeight} --url ${quoted(gateway())}`,
            },
          ]}
        />
        <ViewLink to={link("export", { table, from: from.fromHeight, to: to.toHeight })} />
      </Card>
    </>
  );
}

/** How new the history is, and when it grows: segments have the same number of blocks. */
function Freshness(props: { newest: Segment }) {
  const { from, to } = props.newest;
  const height = useWatch<Schemas["LastBlockHeightReply"]>(HEAD, HEAD_MS).data?.height;
  const sealed = `Sealed up to block ${grouped(to.toString())}.`;
  if (height === undefined) return <>{sealed}</>;
  const next = to + (to - from + 1n);
  const blocks = Number(next - BigInt(height));
  const pace = secondsPerBlock();
  const when = blocks <= 0 ? "now" : `in ${counted(blocks, "block")}${pace ? `, about ${age(blocks * pace * 1000)}` : ""}`;
  return (
    <>
      {sealed} The next segment, up to block {grouped(next.toString())}, is due {when}.
    </>
  );
}

/** A checksum in hex, as most tools print it, and in base64, as the gateway's header has it. */
function Checksum(props: { of: string }) {
  return (
    <span data-digest={props.of}>
      <code>{hexOf(props.of)}</code> <span class="dim">base64 {props.of}</span>
    </span>
  );
}

interface File {
  length: number;
  rows: string;
  digest: string;
  name: string;
}

/** Length, rows and checksum of a download before it begins. */
function useHead(relative: string): { file?: File; problem?: Problem } {
  const [state, setState] = useState<{ of: string; file?: File; problem?: Problem }>({ of: relative });
  const timer = useRef(0);
  useEffect(() => {
    const gone = new AbortController();
    const ask = async () => {
      try {
        const signal = AbortSignal.any([gone.signal, AbortSignal.timeout(20_000)]);
        const response = await fetch(relative, { method: "HEAD", headers: READ, signal });
        if (!response.ok) {
          // A head has no body: the reason comes with the whole answer.
          throw await refusal(await fetch(relative, { signal, headers: { ...READ, range: "bytes=0-0" } }));
        }
        const { headers } = response;
        const name = headers.get("content-disposition")?.match(/filename="([^"]+)"/)?.[1] ?? "";
        const digest = digestOf(headers.get("repr-digest")) ?? "";
        const file = { length: Number(headers.get("content-length")), rows: headers.get("x-total-rows") ?? "", digest, name };
        setState({ of: relative, file });
      } catch (error) {
        if (gone.signal.aborted) return;
        const problem = problemOf(error);
        setState({ of: relative, problem });
        if (problem.isPassing) timer.current = window.setTimeout(ask, 1000);
      }
    };
    timer.current = window.setTimeout(ask, RESTS_MS);
    return () => {
      gone.abort();
      clearTimeout(timer.current);
    };
  }, [relative]);
  return state.of === relative ? state : {};
}
