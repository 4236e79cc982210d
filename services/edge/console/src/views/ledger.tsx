// A party's ledger of one asset as CSV.
import { address, target, type Query } from "../api";
import { local, nanoseconds, quoted } from "../format";
import { NameField } from "../named";
import { assets } from "../names";
import { Card, Copy, Empty, Field, Lines } from "../parts";
import { go, link, useTyped } from "../route";
import { Transfer } from "../transfer";

const PARTY = /^([0-9a-fA-F]{64}|network)$/;
const ASSET = /^[A-Za-z0-9_-]{1,64}$/;

export function Ledger(props: { query: URLSearchParams }) {
  const { query } = props;
  const given = { party: query.get("party") ?? "", asset: query.get("asset") ?? "", start: query.get("start") ?? "", end: query.get("end") ?? "" };
  const [typed, setTyped] = useTyped({ ...given, start: local(given.start), end: local(given.end) }, query.toString());
  const [start, end] = [nanoseconds(typed.start), nanoseconds(typed.end)];
  const asset = assets.find(typed.asset).id;
  const wrong = {
    party: typed.party && !PARTY.test(typed.party) ? "expected: 64 hex digits, or network" : undefined,
    end: start && end && BigInt(end) < BigInt(start) ? "before the beginning" : undefined,
  };
  const submit = (event: Event) => {
    event.preventDefault();
    if (!wrong.party && asset !== undefined && !wrong.end) go("export/ledger", { party: typed.party, asset, start, end });
  };
  const isAsked = PARTY.test(given.party) && ASSET.test(given.asset);
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
        <Field label="From, UTC" type="datetime-local" value={typed.start} onInput={(start) => setTyped({ ...typed, start })} />
        <Field label="Until before, UTC" type="datetime-local" value={typed.end} wrong={wrong.end} onInput={(end) => setTyped({ ...typed, end })} />
        <button type="submit" class="primary">
          Choose
        </button>
      </form>
      {!isAsked && <Empty>Give a party and an asset; without times the whole ledger is exported.</Empty>}
      {isAsked && (
        <>
          <p class="dim">
            Rows as CSV, in the order of time. How many there are is known when the last one has come; a download that breaks off
            begins anew.
          </p>
          <Transfer key={relative} url={relative} fileName="ledger_entries.csv" isReady isResumable={false} />
          <Lines of={[{ name: "curl", text: `curl -OJ ${quoted(address(relative))}` }]} />
          <p class="dim">
            <a href={link("export/ledger", given)}>Link to this view</a>{" "}
            <Copy text={address(link("export/ledger", given))} label="the link to this view" />
          </p>
        </>
      )}
    </Card>
  );
}
