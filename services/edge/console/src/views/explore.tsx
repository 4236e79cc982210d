// Explore: the lists as tables that page by cursor, and what is found by its id.
import { useEffect, useRef } from "preact/hooks";
import { address, hasPast, target, useRead, type Query } from "../api";
import { nanoseconds, quoted, short } from "../format";
import { NameField } from "../named";
import { labelOf } from "../names";
import { Choice, Empty, Field, grpcLine, Lines, Notice, Paused, Select, TimeField, ViewLink, type Line } from "../parts";
import { go, link, readBlock, useTyped, type Route } from "../route";
import { useStill } from "../still";
import { useWatch } from "../watch";
import { pageOf, Table } from "../table";
import { useSubject } from "../title";
import { LISTS, type Filter, type List } from "./lists";
import { OracleSpec, Order, Withdrawal } from "./single";

const KINDS = [
  ...LISTS.map((list) => [list.name, list.title] as const),
  ["order", "Order"] as const,
  ["withdrawal", "Withdrawal"] as const,
  ["oracle-spec", "Oracle specification"] as const,
];

const SIZES = ["20", "50", "200"].map((size) => [size, size] as [string, string]);

export function Explore(props: { route: Route }) {
  const { route } = props;
  const kind = route.path[1] ?? LISTS[0]!.name;
  const list = LISTS.find((list) => list.name === kind);
  const id = route.path[2] ?? "";
  const [, title = ""] = KINDS.find(([name]) => name === kind) ?? [];
  useSubject(route.path[1] ? `${title} ${labelOf(short(id))}`.trim() : "");
  return (
    <>
      <Choice label="List" of={KINDS} value={kind} onChoose={(kind) => go(`explore/${kind}`)} />
      {list && <Listing key={list.name} list={list} query={route.query} />}
      {kind === "order" && <Order id={id} version={route.query.get("version") ?? ""} />}
      {kind === "withdrawal" && <Withdrawal id={id} />}
      {kind === "oracle-spec" && <OracleSpec id={id} />}
      {!KINDS.some(([name]) => name === kind) && <Empty>Page not found. Choose one of the lists above.</Empty>}
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
    const one = /^(liveOnly|pagination\.newestFirst)$/.test(name) ? value === "true" : /^pagination\.(first|last)$/.test(name) ? Number(value) : value;
    const is = list.filters.some((filter) => filter.name === name && filter.isRepeated) ? [one] : one;
    message[outer] = inner === undefined ? is : { ...(message[outer] as object), [inner]: is };
  }
  return [{ name: "curl", text: `curl ${quoted(address(target(list.path, query)))}` }, grpcLine(message, list.method, hasPast(list.path))];
}

function Listing(props: { list: List; query: URLSearchParams }) {
  const { list } = props;
  const values = valuesOf(list, props.query);
  const [typed, setTyped] = useTyped(values, props.query.toString());
  const isFiltered = list.filters.some(({ name }) => values[name] !== "");
  const isAsked = isFiltered || !list.needsFilter;
  const query = asked(list, values);
  const relative = isAsked ? target(list.path, query) : undefined;
  // A page that is reached by its cursor stays as it is.
  const isFirst = !values.after && !values.before;
  const watched = useWatch<never>(isFirst ? relative : undefined);
  const once = useRead<never>(isFirst ? undefined : relative);
  const { problem, isLoading } = isFirst ? watched : once;
  const table = useRef<HTMLDivElement>(null);
  const [data, isWaiting] = useStill(isFirst ? watched.data : once.data, relative ?? "", table);
  const page = data === undefined ? undefined : pageOf(list, data);
  const move = (to: Record<string, string>, replace = false) =>
    go(`explore/${list.name}`, { ...values, after: "", before: "", ...to }, replace);
  // The first page is always the one that is watched.
  const isTop = Boolean(values.before) && page?.pageInfo.hasPreviousPage === false;
  useEffect(() => {
    if (isTop) move({}, true);
  }, [isTop]);
  const submit = (event: Event) => {
    event.preventDefault();
    const meant = list.filters.map((filter) => [filter.name, meaning(filter, typed[filter.name] ?? "")] as const);
    if (meant.every(([, value]) => value !== undefined)) move({ ...values, ...(Object.fromEntries(meant) as Record<string, string>) });
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
            <Given
              key={filter.name}
              filter={filter}
              value={typed[filter.name] ?? ""}
              onInput={(value) => setTyped({ ...typed, [filter.name]: value })}
            />
          ),
        )}
        <button type="submit" class="primary">
          Show
        </button>
      </form>
      <p class="dim">
        {list.about}
        {readBlock() && !hasPast(list.path) && " This list has no past and shows now."}
      </p>
      {!isAsked && <Empty>{list.needsFilter}</Empty>}
      {problem && <Notice problem={problem} />}
      {isLoading && !page && <Empty>Loading…</Empty>}
      {page && <Table list={list} page={page} isLoading={isLoading} place={table} />}
      {page && list.page && (
        <div class="pager">
          <Select label="Rows" value={values.size || SIZES[0]![0]} of={SIZES} onChoose={(size) => move({ size })} />
          <Select
            label="Order"
            value={values.order ?? ""}
            of={[
              ["", list.orders?.[0] ?? "Newest first"],
              ["oldest", list.orders?.[1] ?? "Oldest first"],
            ]}
            onChoose={(order) => move({ order })}
          />
          <Paused isWaiting={isWaiting} />
          <span class="steps">
            <button type="button" disabled={isFirst} onClick={() => move({})}>
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
          <ViewLink to={link(`explore/${list.name}`, values)} />
        </>
      )}
    </section>
  );
}

/** The value that is sent for what is typed; nothing when it is wrong. */
function meaning(filter: Filter, typed: string): string | undefined {
  const found = filter.of?.find(typed);
  const meant = found ? (found.id ?? found.first) : filter.isTime ? nanoseconds(typed.trim()) : typed.trim();
  return meant === undefined || meant === "" || filter.form.test(meant) ? meant : undefined;
}

/** The field of a filter that is typed. */
function Given(props: { filter: Filter; value: string; onInput: (value: string) => void }) {
  const { filter, value, onInput } = props;
  const { label, hint } = filter;
  if (filter.of) return <NameField label={label} of={filter.of} value={value} onInput={onInput} />;
  if (filter.isTime) return <TimeField label={label} value={value} onInput={onInput} />;
  const isWrong = meaning(filter, value) === undefined;
  return (
    <Field
      label={label}
      value={value}
      hint={hint}
      wide={hint !== undefined}
      wrong={isWrong ? `expected: ${hint ?? "another value"}` : undefined}
      onInput={(value) => onInput(value.trim())}
    />
  );
}
