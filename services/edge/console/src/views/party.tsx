// One party: its accounts, positions, trades and delegations, live, and its ledger as a file.
import { useRef, useState } from "preact/hooks";
import { address, target, type Query } from "../api";
import { quoted } from "../format";
import { remember, useMine } from "../mine";
import { assets } from "../names";
import { Card, Copy, Empty, Field, Lines, Notice, Select, ViewLink } from "../parts";
import { link, open, partyLink, useTyped, type Route } from "../route";
import { useStill } from "../still";
import { pageOf, Table } from "../table";
import { Transfer } from "../transfer";
import { useWatch } from "../watch";
import { accounts, delegations, positions, trades, type List } from "./lists";

const PARTY = /^([0-9a-fA-F]{64}|network)$/;
const HEX = /^[0-9a-fA-F]{64}$/;

/** Rows of a list. */
const ROWS = 20;
const FEW = 8;

export function PartyPage(props: { route: Route }) {
  const given = props.route.path[1] ?? "";
  const id = HEX.test(given) ? given.toLowerCase() : given;
  return PARTY.test(id) ? <OfParty key={id} id={id} /> : <Find given={given} />;
}

/** The page without a party. */
function Find(props: { given: string }) {
  const [typed, setTyped] = useTyped(props.given, props.given);
  const wrong = typed !== "" && !PARTY.test(typed) ? "expected: 64 hex digits, or network" : undefined;
  const submit = (event: Event) => {
    event.preventDefault();
    if (typed && !wrong) open(partyLink(typed));
  };
  return (
    <Card title="Party">
      <form class="filters" onSubmit={submit} role="search" aria-label="Find a party">
        <Field label="Party" value={typed} wide hint="public key, 64 hex digits" wrong={wrong} onInput={(text) => setTyped(text.trim())} />
        <button type="submit" class="primary">
          Show
        </button>
      </form>
      <Empty>
        A party is a public key. The lists of <a href={link("explore/trades")}>trades</a> and{" "}
        <a href={link("explore/positions")}>positions</a> link to parties.
      </Empty>
    </Card>
  );
}

function OfParty(props: { id: string }) {
  const { id } = props;
  const isMine = useMine() === id;
  return (
    <>
      <section class="card" aria-label="Party">
        <header class="card-head">
          <h2>
            Party{" "}
            <code class="id-whole" data-party={id}>
              {id}
            </code>{" "}
            <Copy text={id} label="the id of the party" />
          </h2>
          <button type="button" aria-pressed={isMine} onClick={() => remember(isMine ? "" : id)}>
            {isMine ? "Forget this party" : "Remember this party"}
          </button>
        </header>
        <p class="dim">
          {isMine ? "This browser remembers the party: My party at the top leads here." : "A remembered party has a link at the top of each page."}
        </p>
      </section>
      <Part list={accounts} filter="party" id={id} without="Party" />
      <Part list={positions} filter="partyId" id={id} without="Party" />
      <Part list={trades} filter="partyId" id={id} />
      {id !== "network" && <Part list={delegations} filter="partyId" id={id} without="Party" rows={FEW} />}
      <Card title="Rewards">
        <p>
          Rewards are paid into the party's accounts, and the ledger below contains each payment. The API lists{" "}
          <a href={link("explore/rewards")}>rewards by epoch</a> as sums over all parties.
        </p>
      </Card>
      <LedgerFile id={id} />
      <ViewLink to={partyLink(id)} />
    </>
  );
}

/** The request of a list of a party. */
function requestOf(list: List, filter: string, id: string, rows = ROWS): string {
  const query: Query = [[filter, id]];
  if (list.page) query.push(["pagination.first", String(rows)]);
  return target(list.path, query);
}

/** The newest rows of a list of a party. */
function Part(props: { list: List; filter: string; id: string; without?: string; rows?: number }) {
  const { list, filter, id } = props;
  const relative = requestOf(list, filter, id, props.rows);
  const place = useRef<HTMLDivElement>(null);
  const { data, problem } = useWatch<never>(relative);
  const [shown] = useStill(data, relative, place);
  const page = shown === undefined ? undefined : pageOf(list, shown);
  const all = link(`explore/${list.name}`, { [filter]: id });
  return (
    <Card title={list.title} aside={<a href={all}>{page?.pageInfo.hasNextPage ? `All ${list.title.toLowerCase()}` : "As a list with filters"}</a>}>
      {problem && <Notice problem={problem} />}
      {!page && !problem && <Empty>Loading…</Empty>}
      {page && <Table list={list} page={page} place={place} without={props.without} />}
    </Card>
  );
}

/** The ledger of the party in one of its assets. */
function LedgerFile(props: { id: string }) {
  const { id } = props;
  const { data } = useWatch<never>(requestOf(accounts, "party", id));
  const held = [...new Set(data === undefined ? [] : accounts.rows!(data).map(({ asset }) => asset))];
  const [chosen, setChosen] = useState<string>();
  const { known } = assets.useAll();
  const asset = chosen ?? held[0];
  const relative = target("api/v2/ledgerentry/export", [["partyId", id], ["assetId", asset ?? ""]]);
  return (
    <Card title="Ledger" aside={<a href={link("export/ledger", { party: id, asset })}>With a time range</a>}>
      {!asset && <Empty>{data === undefined ? "Loading…" : "The party has no accounts, so it has no ledger."}</Empty>}
      {asset && (
        <>
          <p class="dim">All transfers of the party in one asset as CSV, the oldest first.</p>
          <div class="filters">
            <Select label="Asset" value={asset} of={held.map((id) => [id, known.get(id)?.text ?? id])} onChoose={setChosen} />
          </div>
          <Transfer key={relative} url={relative} fileName="ledger_entries.csv" isReady isResumable={false} />
          <Lines of={[{ name: "curl", text: `curl -o ledger_entries.csv ${quoted(address(relative))}` }]} />
        </>
      )}
    </Card>
  );
}
