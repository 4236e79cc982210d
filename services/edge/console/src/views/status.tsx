// Status, for operators: height and lag, services, limits.
import { address, gateway, useRead, type Schemas } from "../api";
import { age, bytes, counted, grouped, milliseconds, quoted, rough, time } from "../format";
import { type Halt, higher, lag, type Live, type Pace, type Service } from "../live";
import { Card, Empty, Facts, Id, KeyForm, Lines, Notice } from "../parts";
import { link, type Route } from "../route";
import { Spark } from "../spark";
import { HEAD, HEAD_MS, useWatch } from "../watch";

export function Status(props: { route: Route; live: Live }) {
  const { live } = props;
  return (
    <>
      <div class="tiles">
        <Height live={live} />
        <Behind live={live} />
        <Upgrade />
        <Gateway />
      </div>
      {live.now?.halt && <Halted halt={live.now.halt} />}
      <Services live={live} />
      <div class="pair">
        <Network />
        <Limits />
      </div>
      <Lines
        of={[
          { name: "curl", text: `curl ${quoted(address("blockchain/height"))}` },
          { name: "curl", text: `curl ${quoted(address("api/v2/network/limits?pretty"))}` },
        ]}
      />
    </>
  );
}

/** What a halt means, in words. */
const HALTS: Record<Halt["reason"], string> = {
  decode: "the decoder cannot read it",
  refused: "the database refuses one of its rows",
  forked: "it does not follow the newest stored block",
  other_chain: "the consensus node has a different chain id",
  pruned: "the consensus node has removed it",
  no_results: "the consensus node keeps no results of blocks",
  too_large: "it is larger than the transfer limit",
};

function Halted(props: { halt: Halt }) {
  const { height, reason } = props.halt;
  return (
    <div class="notice" role="alert" data-halt={reason}>
      <strong>
        No new blocks: block {grouped(height)} cannot be stored, because {HALTS[reason]}.
      </strong>
      <span class="dim">Stored blocks are still served. The log of the service ingest has the cause.</span>
    </div>
  );
}

function Height(props: { live: Live }) {
  const { now, times, storeHeights } = props.live;
  const head = useWatch<Schemas["LastBlockHeightReply"]>(HEAD, HEAD_MS);
  const height = higher(head.data?.height, now?.nodeHeight ?? now?.store?.height);
  const newest = now?.store;
  return (
    <section class="tile" aria-label="Height">
      <h2>Height</h2>
      <p class="big number" data-height={height}>
        {height === undefined ? "–" : grouped(height)}
      </p>
      <p class="dim">
        {!newest
          ? "the state of the store is unknown"
          : newest.timestamp === "0"
            ? "no block yet"
            : `newest block ${time(newest.timestamp).slice(0, 19)}`}
      </p>
      <Spark times={times} values={storeHeights} />
    </section>
  );
}

function Behind(props: { live: Live }) {
  const { now, times, lags } = props.live;
  const behind = lag(now);
  const newest = now?.store?.timestamp;
  const since = newest && newest !== "0" ? milliseconds(now.takenAt) - milliseconds(newest) : undefined;
  return (
    <section class="tile" aria-label="Lag">
      <h2>Lag</h2>
      <p class="big number" data-lag={behind ?? ""}>
        {behind === null ? "–" : grouped(String(behind))}
        <small>{behind === 1 ? "block" : "blocks"}</small>
      </p>
      <p class="dim">{since === undefined ? "the state of the store is unknown" : `newest block is ${age(since)} old`}</p>
      <Spark times={times} values={lags} colour="amber" />
    </section>
  );
}

function Upgrade() {
  const { data, problem } = useWatch<Schemas["GetProtocolUpgradeStatusReply"]>("api/v2/upgrade/status", 5000);
  return (
    <section class="tile" aria-label="Upgrade">
      <h2>Upgrade</h2>
      <p class="big" data-upgrade={data ? String(data.ready) : ""}>
        {data ? (data.ready ? "Ready" : "None due") : "–"}
      </p>
      <p class="dim">
        {!data
          ? problem?.message
          : data.ready
            ? "the data up to the upgrade is stored and sealed"
            : "no approved upgrade at this height"}
      </p>
      <p>
        <a href={link("explore/proposals")}>Upgrade proposals</a>
      </p>
    </section>
  );
}

function Gateway() {
  const { data, problem } = useWatch<Schemas["InfoReply"]>("api/v2/info", 10_000);
  return (
    <section class="tile" aria-label="Gateway">
      <h2>Gateway</h2>
      <p class="big" data-version={data?.version}>
        {data?.version ?? "–"}
      </p>
      <p class="dim">{problem && !data ? problem.message : <>commit {data ? <Id id={data.commitHash} /> : "–"}</>}</p>
      <p class="dim hostile">{gateway()}</p>
    </section>
  );
}

function Services(props: { live: Live }) {
  const { now, paces, times } = props.live;
  return (
    <Card
      title="Services"
      aside={<span class="dim">counted by the message bus, last two minutes{now?.isCut ? "; some replicas are not shown" : ""}</span>}
    >
      {!now && <Empty>Loading…</Empty>}
      <div class="services" data-looks={times.length}>
        {now?.services.map((service) => (
          <ServiceTile key={service.name} service={service} paces={paces.get(service.name) ?? []} times={times} />
        ))}
      </div>
    </Card>
  );
}

function ServiceTile(props: { service: Service; paces: Pace[]; times: number[] }) {
  const { service, paces } = props;
  const latest = paces.at(-1);
  const slow = paces.findLast((pace) => pace.meanMs !== null)?.meanMs;
  const errors = paces.reduce((sum, pace) => sum + pace.failed, 0);
  const requests = service.replicas.reduce((sum, replica) => sum + BigInt(replica.requests), 0n);
  const busiest = [...service.operations].sort((one, other) => Number(BigInt(other.requests) - BigInt(one.requests)));
  // A service that came late has fewer looks than there are times.
  const times = props.times.slice(-paces.length);
  return (
    <section class="service" aria-label={service.name} data-service={service.name} data-taking={service.isTaking}>
      <header>
        <span class={`dot ${service.isTaking ? "good" : "bad"}`} aria-hidden="true" />
        <h3>{service.name}</h3>
        <span class={service.isTaking ? "dim" : "gone"} data-replicas={service.replicas.length}>
          {service.isTaking
            ? counted(service.replicas.length, "replica")
            : "unavailable"}
        </span>
      </header>
      <Spark times={times} values={paces.map((pace) => pace.perSecond)} colour="blue" height={52} />
      <Facts
        of={[
          ["requests/s", latest?.perSecond == null ? "–" : rough(latest.perSecond)],
          ["mean", slow == null ? "–" : `${rough(slow)} ms`],
          ["errors", grouped(String(errors))],
        ]}
      />
      <details>
        <summary>{counted(requests, "request")} since the start</summary>
        <div class="scroll" role="region" aria-label={`Operations of ${service.name}, table`} tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th scope="col">Operation</th>
                <th scope="col" class="right">
                  Requests
                </th>
                <th scope="col" class="right">
                  Mean
                </th>
                <th scope="col" class="right">
                  Errors
                </th>
              </tr>
            </thead>
            <tbody>
              {busiest.map((operation) => (
                <tr key={operation.name}>
                  <td>{operation.name}</td>
                  <td class="right number">{grouped(operation.requests)}</td>
                  <td class="right number">
                    {operation.requests === "0"
                      ? "–"
                      : `${rough(Number(BigInt(operation.busyNs) / BigInt(operation.requests)) / 1e6)} ms`}
                  </td>
                  <td class="right number">{grouped(operation.errors)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        {service.replicas.map((replica) => (
          <p class="dim" key={replica.id}>
            {replica.id}, version {replica.version}, since {replica.started.slice(0, 19).replace("T", " ")}
          </p>
        ))}
      </details>
    </section>
  );
}

function Network() {
  const height = useWatch<Schemas["LastBlockHeightReply"]>(HEAD, HEAD_MS);
  const limits = useWatch<Schemas["GetNetworkLimitsReply"]>("api/v2/network/limits", 10_000);
  const yes = (value: boolean) => (value ? "yes" : "no");
  const chain = height.data;
  const network = limits.data?.limits;
  // A network without limits answers 404. Otherwise there is mostly one reason for both.
  const limitsProblem = network || limits.problem?.status === 404 ? undefined : limits.problem;
  const problem = (chain ? undefined : height.problem) ?? limitsProblem;
  return (
    <Card title="Network">
      {problem && <Notice problem={problem} />}
      <Facts
        of={[
          ["Chain", chain ? <span data-chain={chain.chainId}>{chain.chainId}</span> : "–"],
          ["Block hash", chain ? <Id id={chain.hash} /> : "–"],
          [
            "Proof of work",
            chain
              ? `${chain.spamPowDifficulty} bits, ${chain.spamPowNumberOfTxPerBlock} per block of the last ${chain.spamPowNumberOfPastBlocks}${chain.spamPowIncreasingDifficulty ? ", rising" : ""}`
              : "–",
          ],
          ["Markets can be proposed", network ? yes(network.canProposeMarket) : "–"],
          ["Assets can be proposed", network ? yes(network.canProposeAsset) : "–"],
          ["Genesis state loaded", network ? yes(network.genesisLoaded) : "–"],
        ]}
      />
    </Card>
  );
}

function Limits() {
  const { data, problem } = useRead<Schemas["LimitsReply"]>("limits");
  const most = (count: number) => (count === 0 ? "no limit" : grouped(String(count)));
  return (
    <Card title="Limits of this gateway" aside={<a href="limits?pretty">All limits</a>}>
      {problem && !data && <Notice problem={problem} />}
      {data && (
        <Facts
          of={[
            ["Rows of a page", `${most(data.rows.pageDefault)}, at most ${most(data.rows.pageGreatest)}`],
            ["Accounts of a list", most(data.rows.accountsGreatest)],
            ["Requests per second", most(data.rate.requestsPerS)],
            ["Concurrent downloads", most(data.rate.exportsPerAddress)],
            ["Request body", bytes(data.request.bodyBytes)],
            ["Query time limit", `${data.time.queryMs / 1000} s`],
          ]}
        />
      )}
      <KeyForm />
    </Card>
  );
}
