// A page of a list as a table; on a phone each row is a card.
import type { RefObject } from "preact";
import { useState } from "preact/hooks";
import { grouped } from "./format";
import { Empty } from "./parts";
import type { List, Page } from "./views/lists";

/** Rows of a list without pages that are drawn at a time. */
const DRAWN = 100;

/** `without`: columns that are left out, by name. */
export function Table(props: {
  list: List;
  page: Page<unknown>;
  isLoading?: boolean;
  place?: RefObject<HTMLDivElement | null>;
  without?: string;
}) {
  const { list, page } = props;
  const columns = list.columns.filter(({ name }) => name !== props.without);
  const [drawn, setDrawn] = useState(DRAWN);
  if (page.edges.length === 0) return <Empty>No rows.</Empty>;
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
