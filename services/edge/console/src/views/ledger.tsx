// A party's ledger of one asset as CSV.
import { address, target, type Query } from "../api";
import { nanoseconds, quoted } from "../format";
import { NameField } from "../named";
import { assets } from "../names";
import { Card, Empty, Field, Lines, TimeField, ViewLink } from "../parts";
import { go, link, useTyped } from "../route";
import { Transfer } from "../transfer";

const PARTY = /^([0-9a-fA-F]{64}|network)$/;
const ASSET = /^[A-Za-z0-9_-]{1,64}$/;

export function Ledger(props: { query: URLSearchParams }) {
  const { query } = props;
  const given = { party: query.get("party") ?? "", asset: query.get("asset") ?? "", start: query.get("start") ?? "", end: query.get("end") ?? "" };
  const [typed, setTyped] = useTyped(given, query.toString());
  const [start, end] = [nanoseconds(typed.start), nanoseconds(typed.end)];
  const meant = assets.find(typed.asset);
  const asset = meant.id ?? meant.first;
  const wrong = {
    party: typed.party && !PARTY.test(typed.party) ? "expected: 64 hex digits, or network" : undefined,
    end: start && end && BigInt(end) < BigInt(start) ? "before the beginning" : undefined,
  };
  const submit = (event: Event) => {
    event.preventDefault();
    if (!wrong.party && asset !== undefined && start !== undefined && end !== undefined && !wrong.end) go("export/ledger", { party: typed.party, asset, start, end });
  };
  const isTimely = nanoseconds(given.start) !== undefined && nanoseconds(given.end) !== undefined;
  const isAsked = PARTY.test(given.party) && ASSET.test(given.asset) && isTimely;
  const asked: Query = [
    ["partyId", given.party],
    ["assetId", given.asset],
    ["dateRange.startTimestamp", given.start],
    ["dateRange.endTimestamp", given.end],
  ];
  const relative = target("api/v2/ledgerentry/export", asked);
  return (
    <Card title="Ledger of a party">
      <form class="filters" onSubmit={submit} aria-label="Ledger to export">
        <Field label="Party" wide value={typed.party} wrong={wrong.party} hint="64 hex digits, or network" onInput={(party) => setTyped({ ...typed, party: party.trim() })} />
        <NameField label="Asset" of={assets} value={typed.asset} onInput={(asset) => setTyped({ ...typed, asset })} />
        <TimeField label="From, UTC" value={typed.start} onInput={(start) => setTyped({ ...typed, start })} />
        <TimeField label="Until before, UTC" value={typed.end} wrong={wrong.end} onInput={(end) => setTyped({ ...typed, end })} />
        <button type="submit" class="primary">
          Choose
        </button>
      </form>
      {!isAsked && (
        <Empty>{isTimely ? "Give a party and an asset. Without times the whole ledger is exported." : "A time in the address is invalid."}</Empty>
      )}
      {isAsked && (
        <>
          <p class="dim">
            All transfers as CSV, the oldest first. The number of rows is known at the end. An interrupted download starts again from
            the beginning.
          </p>
          <Transfer key={relative} url={relative} fileName="ledger_entries.csv" isReady isResumable={false} />
          <Lines of={[{ name: "curl", text: `curl -o ledger_entries.csv ${quoted(address(relative))}` }]} />
          <ViewLink to={link("export/ledger", given)} />
        </>
      )}
    </Card>
  );
}
