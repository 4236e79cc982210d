// A page of a list as a table; on a phone each row is a card.
import type { RefObject } from "preact";
import { useRef, useState } from "preact/hooks";
import { target, type Query, type Reading } from "./api";
import { grouped } from "./format";
import { Card, Empty, Notice, Paused } from "./parts";
import { link } from "./route";
import { useStill } from "./still";
import type { List, Page } from "./views/lists";
import { useWatch } from "./watch";

/** Rows of a list without pages that are drawn at a time. */
const DRAWN = 100;

/** `without`: columns that are left out, by name. `empty` is shown instead of no rows. */
export function Table(props: {
  list: List;
  page: Page<unknown>;
  isLoading?: boolean;
  place?: RefObject<HTMLDivElement | null>;
  without?: string[];
  empty?: string;
}) {
  const { list, page } = props;
  const columns = list.columns.filter(({ name }) => !props.without?.includes(name));
  const [drawn, setDrawn] = useState(DRAWN);
  if (page.edges.length === 0) return <Empty>{props.empty ?? "No rows."}</Empty>;
  const edges = list.page ? page.edges : page.edges.slice(0, drawn);
  return (
    <>
      <div class="scroll" ref={props.place} role="region" aria-label={`${list.title}, table`} tabIndex={0}>
        <table class={`stacks ${list.isDense ? "dense" : ""}`} role="table" data-list={list.name} aria-busy={props.isLoading}>
          <thead role="rowgroup">
            <tr role="row">
              {columns.map((column) => (
                <th key={column.name} role="columnheader" scope="col" class={column.isNumber ? "right" : ""}>
                  {column.name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody role="rowgroup">
            {edges.map(({ node, cursor }) => (
              <tr key={cursor} role="row" data-cursor={cursor}>
                {columns.map((column) => (
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

/** The page in an answer; a list without pages is one. */
export function pageOf(list: List, data: never): Page<unknown> {
  if (list.page) return list.page(data);
  const edges = (list.rows?.(data) ?? []).map((node, row) => ({ node, cursor: String(row) }));
  return { edges, pageInfo: { startCursor: "", endCursor: "", hasNextPage: false, hasPreviousPage: false } };
}

/** Rows of a list in a card. */
const ROWS = 20;

/** The request of the first rows of a list. */
export function requestOf(list: List, filters: Query, rows = ROWS): string {
  return target(list.path, list.page ? [...filters, ["pagination.first", String(rows)]] : filters);
}

interface Shown {
  list: List;
  /** Filters of the list; the link to all of it has the same. */
  filters: Query;
  title?: string;
  without?: string[];
  empty?: string;
}

/** The first rows of a list in a card of a page, live. */
export function Newest(props: Shown & { rows?: number }) {
  const relative = requestOf(props.list, props.filters, props.rows);
  return <Rows {...props} reading={useWatch<never>(relative)} of={relative} />;
}

/** The rows of a list that are in an answer, in a card of a page. `of` names the request. */
export function Rows(props: Shown & { reading: Reading<unknown>; of: string }) {
  const { list, title = list.title } = props;
  const { data, problem } = props.reading;
  const place = useRef<HTMLDivElement>(null);
  const [shown, isWaiting] = useStill(data, props.of, place);
  const page = shown === undefined ? undefined : pageOf(list, shown as never);
  const all = link(`explore/${list.name}`, Object.fromEntries(props.filters));
  const aside = (
    <>
      <Paused isWaiting={isWaiting} isShort />
      <a href={all}>{page?.pageInfo.hasNextPage ? `All ${title.toLowerCase()}` : "As a list with filters"}</a>
    </>
  );
  return (
    <Card title={title} aside={aside}>
      {problem && <Notice problem={problem} />}
      {!page && !problem && <Empty>Loading…</Empty>}
      {page && <Table list={list} page={page} place={place} without={props.without} empty={props.empty} />}
    </Card>
  );
}
