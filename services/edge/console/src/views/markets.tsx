// Markets: all of them with price, change and volume of the last 24 hours, or one of them.
import { useState } from "preact/hooks";
import { dayOf, useDays, type Day } from "../days";
import { counted } from "../format";
import { chainTime, type Live } from "../live";
import { MarketName, Price } from "../named";
import { markets, type Market, type Named } from "../names";
import { Empty, Field, Foreign, Notice, UNREAD } from "../parts";
import { marketLink, open, useTyped, type Route } from "../route";
import { Change, Trend, Volume } from "../trend";
import { OfMarket } from "./market";

/** Rows at first, and rows that are added at a time. */
const SHOWN = 30;

/** States in which a market does not trade any more. */
const ENDED = ["Trading terminated", "Closed", "Settled", "Cancelled", "Rejected"];

export function Markets(props: { route: Route; live: Live }) {
  const { path, query } = props.route;
  const given = path[1] ?? query.get("market") ?? "";
  // A link may have the code of a market instead of its id.
  const found = markets.useAll().find(given);
  if (given !== "" && found.id) {
    return <OfMarket key={found.id.toLowerCase()} id={found.id.toLowerCase()} interval={query.get("interval") ?? ""} live={props.live} />;
  }
  return <MarketList given={given} live={props.live} />;
}

interface Row {
  of: Named<Market>;
  day?: Day;
}

/** Trading markets by their turnover, then ended ones. */
function byTurnover(one: Row, other: Row): number {
  const isEnded = (row: Row) => Number(ENDED.includes(row.of.state));
  return isEnded(one) - isEnded(other) || (other.day?.turnover ?? 0) - (one.day?.turnover ?? 0);
}

/** The markets in which a text occurs. */
function MarketList(props: { given: string; live: Live }) {
  const { known, isRead, problem, isCut } = markets.useAll();
  const [typed, setTyped] = useTyped(props.given, props.given);
  const [most, setMost] = useState(SHOWN);
  const found = markets.matching(typed);
  const now = chainTime(props.live);
  const days = useDays(found.slice(0, most).map(({ id }) => id).sort());
  const rows = found.slice(0, most).map((of): Row => {
    const candles = days(of.id);
    return { of, day: candles && dayOf(candles, of.row, now) };
  });
  rows.sort(byTurnover);
  const first = rows[0]?.of;
  const meant = markets.find(typed);
  const isSearch = typed.trim() !== "";
  const submit = (event: Event) => {
    event.preventDefault();
    const id = meant.id || (isSearch && first?.id);
    if (id) open(marketLink(id));
  };
  const hint = isSearch && first ? `${counted(found.length, "market")}; Enter opens ${first.text}` : "name, code or id";
  return (
    <section class="card" aria-label="Markets">
      <form class="filters" onSubmit={submit} role="search" aria-label="Find a market">
        <Field
          label="Find a market"
          value={typed}
          wide
          hint={hint}
          wrong={isSearch && isRead && meant.id === undefined && !first ? meant.problem : undefined}
          onInput={setTyped}
        />
      </form>
      {problem && !isRead && <Notice problem={problem} />}
      {!isRead && !problem && <Empty>Loading…</Empty>}
      {isRead && known.size === 0 && <Empty>This network has no markets.</Empty>}
      {rows.length > 0 && <Rows of={rows} active={isSearch ? first?.id : undefined} />}
      {(found.length > most || isCut) && (
        <p class="more">
          {counted(rows.length, "market")} of {found.length}
          {isCut && " that are read; others are found by their id"}.{" "}
          {found.length > most && (
            <button type="button" onClick={() => setMost(most + SHOWN)}>
              More
            </button>
          )}
        </p>
      )}
    </section>
  );
}

function Rows(props: { of: Row[]; active?: string }) {
  return (
    <div class="scroll" role="region" aria-label="Markets, table" tabIndex={0}>
      <table class="overview" role="table" data-list="overview">
        <thead role="rowgroup">
          <tr role="row">
            {["Market", "Last price", "24 h change", "24 h volume", "Last 24 h"].map((name, row) => (
              <th key={name} role="columnheader" scope="col" class={row > 0 ? "right" : ""}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {props.of.map((row) => (
            <Overview key={row.of.id} of={row.of} day={row.day} isActive={row.of.id === props.active} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Overview(props: Row & { isActive: boolean }) {
  const { of, day, isActive } = props;
  const market = of.row;
  const isEnded = ENDED.includes(of.state);
  // Rows are links as a whole for a pointer; keys use the link of the name.
  const click = (event: MouseEvent) => {
    const isText = !getSelection()?.isCollapsed || (event.target as Element).closest("a");
    if (!isText) open(marketLink(of.id));
  };
  return (
    <tr role="row" class={`${isActive ? "active" : ""} ${isEnded ? "ended" : ""}`} data-market={of.id} onClick={click}>
      <td role="cell" data-name="Market">
        <MarketName id={of.id} /> {of.state !== "Active" && <small class="chip">{of.state}</small>}
        <small class="dim about-name">
          <Foreign text={of.name} />
        </small>
      </td>
      <td role="cell" class="right number" data-name="Last">
        {day || isEnded ? <Price value={isEnded ? "" : (day?.last ?? "")} market={market} /> : UNREAD}
      </td>
      <td role="cell" class="right" data-name="Change">
        {day || isEnded ? <Change day={isEnded ? undefined : day} /> : UNREAD}
      </td>
      <td role="cell" class="right number" data-name="Volume">
        {day ? <Volume day={day} market={market} /> : UNREAD}
      </td>
      <td role="cell" class="right" data-name="Trend">
        {day && <Trend values={day.closes} />}
      </td>
    </tr>
  );
}
