// The tables that can be exported: what the sealed history has of each, and the columns of one.
import { address, type Schemas } from "../api";
import { bytes, counted, grouped, quoted } from "../format";
import { Card, Empty, grpcLine, Lines, Notice, Time, ViewLink } from "../parts";
import { link } from "../route";
import { Table, pageOf } from "../table";
import { useWatch } from "../watch";
import type { List } from "./lists";

type Dataset = Schemas["Dataset"];

const PATH = "api/v2/datasets";

/** How often is looked whether a segment was sealed. */
const EVERY_MS = 5000;

/** Values of a table without segments are left out. */
const held = (row: Dataset, value: string) => (row.segments === 0 ? <span class="dim">–</span> : grouped(value));

/** The list of all tables; `chosen` is the one whose columns are shown. */
function tableList(chosen: Dataset | undefined): List<Dataset> {
  return {
    name: "datasets",
    title: "Tables",
    about: "",
    path: PATH,
    method: "api.v2.Export/ListDatasets",
    filters: [],
    columns: [
      {
        name: "Table",
        cell: (row) => (
          <a href={link("export/tables", { table: row.enum })} aria-current={row === chosen ? "true" : undefined}>
            {row.table}
          </a>
        ),
      },
      { name: "Rows", isNumber: true, cell: (row) => <span data-rows={row.rows}>{grouped(row.rows)}</span> },
      { name: "CSV", isNumber: true, cell: (row) => <span data-bytes={row.bytes}>{bytes(Number(row.bytes))}</span> },
      { name: "First block", isNumber: true, cell: (row) => held(row, row.firstBlock) },
      { name: "Last block", isNumber: true, cell: (row) => held(row, row.lastBlock) },
      { name: "From", cell: (row) => <Time ns={row.firstTime} /> },
      { name: "To", cell: (row) => <Time ns={row.lastTime} /> },
    ],
    rows: (answer: Schemas["ListDatasetsReply"]) => answer.datasets,
  };
}

const columnList: List<Schemas["DatasetColumn"]> = {
  name: "columns",
  title: "Columns",
  about: "",
  path: PATH,
  method: "",
  filters: [],
  columns: [
    { name: "Column", cell: (row) => <code>{row.name}</code> },
    { name: "Type", cell: (row) => row.type },
    { name: "Unit", cell: (row) => row.unit ?? <span class="dim">–</span> },
    { name: "Content", cell: (row) => <span class="content">{row.description}</span> },
  ],
  rows: (dataset: Dataset) => dataset.columns,
};

export function Datasets(props: { query: URLSearchParams }) {
  const { data, problem } = useWatch<Schemas["ListDatasetsReply"]>(PATH, EVERY_MS);
  if (!data) return problem ? <Notice problem={problem} /> : <Empty>Loading…</Empty>;
  const chosen = data.datasets.find(({ enum: name }) => name === props.query.get("table")) ?? data.datasets[0]!;
  const list = tableList(chosen);
  const versions = chosen.schemaVersions.join(", ");
  return (
    <>
      <Card title="Tables" aside={<span class="dim">{counted(data.datasets.length, "table")}</span>}>
        <p class="dim">
          What the sealed history has of each table. CSV is the size of the unpacked text; a download is compressed. Choose a
          table to see its columns.
        </p>
        <Table list={list} page={pageOf(list, data as never)} />
      </Card>
      <Card
        title={`Columns of ${chosen.table}`}
        aside={
          <span class="dim">
            {chosen.segments === 0 ? "in no segment yet" : `in ${counted(chosen.segments, "segment")}, schema version ${versions}`}
          </span>
        }
      >
        <Table list={columnList} page={pageOf(columnList, chosen as never)} />
        <p>
          <a href={link("export", { table: chosen.enum })}>Download {chosen.table}</a>
        </p>
        <Lines of={[{ name: "curl", text: `curl ${quoted(address(PATH))}` }, grpcLine({}, list.method, false)]} />
        <ViewLink to={link("export/tables", { table: chosen.enum })} />
      </Card>
    </>
  );
}
