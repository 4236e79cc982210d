// Explore: the lists as tables that page by cursor, and what is found by its id.
import { useState } from "preact/hooks";
import { address, target, useRead, type Query } from "../api";
import { grouped, quoted } from "../format";
import { Choice, Copy, Empty, Field, Lines, Notice, Select, type Line } from "../parts";
import { go, link, useTyped, type Route } from "../route";
import { LISTS, type List, type Page } from "./lists";
import { OracleSpec, Withdrawal } from "./single";

const KINDS = [
  ...LISTS.map((list) => [list.name, list.title] as const),
  ["withdrawal", "Withdrawal"] as const,
  ["oracle-spec", "Oracle spec"] as const,
];

const SIZES = ["20", "50", "200"].map((size) => [size, size] as [string, string]);

/** Rows of a list without pages that are drawn at a time. */
const DRAWN = 100;

export function Explore(props: { route: Route }) {
  const { route } = props;
  const kind = route.path[1] ?? LISTS[0]!.name;
  const list = LISTS.find((list) => list.name === kind);
  return (
    <>
      <Choice label="What to look at" of={KINDS} value={kind} onChoose={(kind) => go(`explore/${kind}`)} />
      {list && <Listing key={list.name} list={list} query={route.query} />}
      {kind === "withdrawal" && <Withdrawal id={route.path[2] ?? ""} />}
      {kind === "oracle-spec" && <OracleSpec id={route.path[2] ?? ""} />}
      {!list && kind !== "withdrawal" && kind !== "oracle-spec" && <Empty>There is no such list.</Empty>}
    </>
  );
}

/** What of the address belongs to a list: its filters, and where in it. */
function valuesOf(list: List, query: URLSearchParams): Record<string, string> {
  const names = [...list.filters.map((filter) => filter.name), ...(list.page ? ["after", "before", "size", "order"] : [])];
  return Object.fromEntries(names.map((name) => [name, query.get(name) ?? ""]));
}

/** The request of a list. */
function asked(list: List, values: Record<string, string>): Query {
  const query: Query = list.filters.map(({ name }) => [name, values[name] ?? ""]);
  if (!list.page) return query;
  const size = /^\d{1,4}$/.test(values.size ?? "") ? values.size! : SIZES[0]![0];
  if (values.before) query.push(["pagination.last", size], ["pagination.before", values.before]);
  else query.push(["pagination.first", size], ["pagination.after", values.after ?? ""]);
  if (values.order === "oldest") query.push(["pagination.newestFirst", "false"]);
  return query;
}

/** The same list over HTTP and over gRPC. */
function lines(list: List, query: Query): Line[] {
  const message: Record<string, unknown> = {};
  for (const [name, value] of query.filter(([, value]) => value !== "")) {
    const [outer, inner] = name.split(".") as [string, string | undefined];
    const is = name === "pagination.newestFirst" ? false : /^pagination\.(first|last)$/.test(name) ? Number(value) : value;
    if (inner === undefined) message[outer] = is;
    else message[outer] = { ...(message[outer] as object), [inner]: inner.endsWith("Ids") ? [is] : is };
  }
  const { host } = new URL(document.baseURI);
  return [
    { name: "curl", text: `curl ${quoted(address(target(list.path, query)))}` },
    { name: "gRPC", text: `grpcurl -plaintext -d ${quoted(JSON.stringify(message))} ${host} ${list.method}` },
  ];
}

function Listing(props: { list: List; query: URLSearchParams }) {
  const { list } = props;
  const values = valuesOf(list, props.query);
  const [typed, setTyped] = useTyped(values, props.query.toString());
  const wrong = (name: string) => {
    const filter = list.filters.find((filter) => filter.name === name);
    const value = typed[name] ?? "";
    return value !== "" && filter && !filter.form.test(value) ? `expected: ${filter.hint ?? "another form"}` : undefined;
  };
  const isFiltered = list.filters.some(({ name }) => values[name] !== "");
  const isAsked = isFiltered || !list.needsFilter;
  const query = asked(list, values);
  const { data, problem, isLoading } = useRead<never>(isAsked ? target(list.path, query) : undefined);
  const page = data === undefined ? undefined : pageOf(list, data);
  const move = (to: Record<string, string>) => go(`explore/${list.name}`, { ...values, after: "", before: "", ...to });
  const submit = (event: Event) => {
    event.preventDefault();
    if (!list.filters.some(({ name }) => wrong(name))) move(trimmed(typed));
  };
  return (
    <section class="card" aria-label={list.title}>
      <form class="filters" onSubmit={submit} role="search" aria-label={`Filter of ${list.title}`}>
        {list.filters.map((filter) =>
          filter.choices ? (
            <Select
              key={filter.name}
              label={filter.label}
              value={values[filter.name] ?? ""}
              of={filter.choices}
              onChoose={(value) => move({ [filter.name]: value })}
            />
          ) : (
            <Field
              key={filter.name}
              label={filter.label}
              value={typed[filter.name] ?? ""}
              hint={filter.hint}
              wide={filter.hint !== undefined}
              wrong={wrong(filter.name)}
              onInput={(value) => setTyped({ ...typed, [filter.name]: value.trim() })}
            />
          ),
        )}
        <button type="submit" class="primary">
          Show
        </button>
      </form>
      <p class="dim">{list.about}</p>
      {!isAsked && <Empty>{list.needsFilter}</Empty>}
      {problem && <Notice problem={problem} />}
      {isLoading && !page && <Empty>Loading…</Empty>}
      {page && <Table list={list} page={page} isLoading={isLoading} />}
      {page && list.page && (
        <div class="pager">
          <Select label="Rows" value={values.size || SIZES[0]![0]} of={SIZES} onChoose={(size) => move({ size })} />
          <Select
            label="Order"
            value={values.order ?? ""}
            of={[
              ["", "Newest first"],
              ["oldest", "Oldest first"],
            ]}
            onChoose={(order) => move({ order })}
          />
          <span class="steps">
            <button type="button" disabled={!page.pageInfo.hasPreviousPage} onClick={() => move({})}>
              First
            </button>
            <button
              type="button"
              disabled={!page.pageInfo.hasPreviousPage}
              onClick={() => move({ before: page.pageInfo.startCursor || values.after || "" })}
            >
              Previous
            </button>
            <button
              type="button"
              disabled={!page.pageInfo.hasNextPage}
              onClick={() => move({ after: page.pageInfo.endCursor || values.before || "" })}
            >
              Next
            </button>
          </span>
        </div>
      )}
      {isAsked && (
        <>
          <Lines of={lines(list, query)} />
          <p class="dim">
            <a href={link(`explore/${list.name}`, values)}>Link to this view</a>{" "}
            <Copy text={location.href} label="the link to this view" />
          </p>
        </>
      )}
    </section>
  );
}

function trimmed(values: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value.trim()]));
}

function pageOf(list: List, data: never): Page<unknown> {
  if (list.page) return list.page(data);
  const edges = (list.rows?.(data) ?? []).map((node, row) => ({ node, cursor: String(row) }));
  return { edges, pageInfo: { startCursor: "", endCursor: "", hasNextPage: false, hasPreviousPage: false } };
}

function Table(props: { list: List; page: Page<unknown>; isLoading: boolean }) {
  const { list, page } = props;
  const [drawn, setDrawn] = useState(DRAWN);
  if (page.edges.length === 0) return <Empty>Nothing is there.</Empty>;
  const edges = list.page ? page.edges : page.edges.slice(0, drawn);
  return (
    <>
      <div class="scroll" role="region" aria-label={`${list.title}, table`} tabIndex={0}>
        <table class="stacks" role="table" data-list={list.name} aria-busy={props.isLoading}>
          <thead role="rowgroup">
            <tr role="row">
              {list.columns.map((column) => (
                <th key={column.name} role="columnheader" scope="col" class={column.isNumber ? "right" : ""}>
                  {column.name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody role="rowgroup">
            {edges.map(({ node, cursor }) => (
              <tr key={cursor} role="row" data-cursor={cursor}>
                {list.columns.map((column) => (
                  <td key={column.name} role="cell" class={column.isNumber ? "right number" : ""} data-name={column.name}>
                    {column.cell(node)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {edges.length < page.edges.length && (
        <p class="more">
          {grouped(String(edges.length))} of {grouped(String(page.edges.length))}{" "}
          <button type="button" onClick={() => setDrawn(drawn + 5 * DRAWN)}>
            More
          </button>
        </p>
      )}
    </>
  );
}
