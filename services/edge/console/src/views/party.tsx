// One party: its accounts, positions and live orders, which are one read, its trades, deposits, withdrawals and delegations,
// live, and its ledger as a file.
import { useState } from "preact/hooks";
import { address, target, type Query, type Schemas } from "../api";
import { quoted, short } from "../format";
import { remember, useMine } from "../mine";
import { assets } from "../names";
import { Card, Copy, Empty, Field, Lines, Select, ViewLink } from "../parts";
import { link, open, partyLink, readBlock, useTyped, type Route } from "../route";
import { Newest, requestOf, Rows } from "../table";
import { useSubject } from "../title";
import { Transfer } from "../transfer";
import { useWatch } from "../watch";
import { accounts, delegations, deposits, orders, positions, trades, withdrawals, type List } from "./lists";

const PARTY = /^([0-9a-fA-F]{64}|network)$/;
const HEX = /^[0-9a-fA-F]{64}$/;

/** Rows of a short list. */
const FEW = 8;

/** The number of the refusal of a portfolio with too many rows of a kind. */
const PORTFOLIO = 70001;

type Portfolio = Schemas["GetPortfolioReply"];

/** The lists of a portfolio, with the filters by which each is listed on its own. */
const HELD: [list: List, filters: (id: string) => Query, rows: (answer: Portfolio) => unknown[], title?: string][] = [
  [accounts, (id) => [["party", id]], ({ portfolio }) => portfolio.accounts],
  [positions, (id) => [["partyId", id]], ({ portfolio }) => portfolio.positions],
  [orders, (id) => [["partyId", id], ["liveOnly", "true"]], ({ portfolio }) => portfolio.orders, "Live orders"],
];

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
  useSubject(short(id));
  const path = target(`api/v2/party/${id}/portfolio`);
  const portfolio = useWatch<Portfolio>(path);
  const isTooLong = portfolio.problem?.number === PORTFOLIO && portfolio.problem.status < 500;
  const ofParty: Query = [["partyId", id]];
  const listed = useWatch<Schemas["ListAccountsReply"]>(isTooLong ? requestOf(accounts, [["party", id]]) : undefined);
  const balances = listed.data?.accounts ?? portfolio.data?.portfolio.accounts;
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
      {HELD.map(([list, filters, rows, title]) => {
        const shown = { key: list.name, filters: filters(id), without: ["Party"], title };
        if (isTooLong) return <Newest {...shown} list={list} />;
        return <Rows {...shown} list={{ ...list, page: undefined, rows }} reading={portfolio} of={path} />;
      })}
      <Newest list={trades} filters={ofParty} />
      <Newest list={deposits} filters={ofParty} without={["Party"]} rows={FEW} />
      <Newest list={withdrawals} filters={ofParty} without={["Party"]} rows={FEW} />
      {id !== "network" && <Newest list={delegations} filters={ofParty} without={["Party"]} rows={FEW} />}
      <Card title="Rewards">
        <p>
          Rewards are paid into the party's accounts, and the ledger below contains each payment. The API lists{" "}
          <a href={link("explore/rewards")}>rewards by epoch</a> as sums over all parties.
        </p>
      </Card>
      <LedgerFile id={id} balances={balances} />
      <ViewLink to={partyLink(id)} />
    </>
  );
}

/** The ledger of the party in one of its assets. */
function LedgerFile(props: { id: string; balances: Schemas["AccountBalance"][] | undefined }) {
  const { id, balances } = props;
  const held = [...new Set(balances?.map(({ asset }) => asset))];
  const [chosen, setChosen] = useState<string>();
  const { known } = assets.useAll();
  const asset = chosen ?? held[0];
  const relative = target("api/v2/ledgerentry/export", [["partyId", id], ["assetId", asset ?? ""]]);
  return (
    <Card title="Ledger" aside={<a href={link("export/ledger", { party: id, asset })}>With a time range</a>}>
      {!asset && <Empty>{balances === undefined ? "Loading…" : "The party has no accounts, so it has no ledger."}</Empty>}
      {asset && (
        <>
          <p class="dim">All transfers of the party in one asset as CSV, the oldest first.{readBlock() && " The file has no past: it reaches up to now."}</p>
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
