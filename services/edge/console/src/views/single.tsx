// What is found by its id: one order, one withdrawal, one oracle spec.
import type { ComponentChildren } from "preact";
import { address, target, useRead, type Reading, type Schemas } from "../api";
import { isDemo } from "../demo";
import { quoted, word } from "../format";
import { Amount, AssetName, MarketName, Party, Price, Size } from "../named";
import type { Market } from "../names";
import { Empty, Facts, Field, Foreign, grpcLine, Id, Lines, Notice, Time, ViewLink } from "../parts";
import { go, link, useTyped } from "../route";
import { HEAD, HEAD_MS, useWatch } from "../watch";
import { InMarket, kindOf, SideName } from "./lists";

const HEX = /^[0-9a-fA-F]{64}$/;

/** One item by its id: the field for the id, and the item. */
function Single<T>(props: {
  kind: string;
  title: string;
  about: string;
  path: string;
  method: string;
  field: string;
  /** What has ids: a link, and its name. */
  origin: [to: string, name: string];
  id: string;
  /** The version that is shown, the newest for an empty text; nothing where there are no versions. */
  version?: string;
  show: (data: T) => ComponentChildren;
}) {
  const { kind, title, id, version } = props;
  const [typed, setTyped] = useTyped(id, id);
  const [typedVersion, setTypedVersion] = useTyped(version ?? "", `${id} ${version}`);
  const relative = id === "" ? undefined : target(`${props.path}/${encodeURIComponent(id)}`, [["version", version ?? ""]]);
  const { data, problem, isLoading }: Reading<T> = useWatch<T>(relative);
  const wrong = typed !== "" && !HEX.test(typed) ? "expected: 64 hex digits" : undefined;
  const isNumber = /^\d{0,10}$/.test(typedVersion);
  const submit = (event: Event) => {
    event.preventDefault();
    if (!wrong && isNumber) go(typed ? `explore/${kind}/${typed}` : `explore/${kind}`, { version: typedVersion });
  };
  return (
    <section class="card" aria-label={title}>
      <form class="filters" onSubmit={submit} role="search" aria-label={`Find: ${title}`}>
        <Field label="Id" value={typed} hint="64 hex digits" wide wrong={wrong} onInput={(value) => setTyped(value.trim())} />
        {version !== undefined && (
          <Field
            label="Version"
            value={typedVersion}
            hint="empty: the newest"
            wrong={isNumber ? undefined : "expected: a number"}
            onInput={(value) => setTypedVersion(value.trim())}
          />
        )}
        <button type="submit" class="primary">
          Show
        </button>
      </form>
      <p class="dim">{props.about}</p>
      {id === "" && <Origin kind={kind} of={props.origin} path={`/${props.path}/{${props.field}}`} />}
      {problem && <Notice problem={problem} />}
      {isLoading && <Empty>Loading…</Empty>}
      {data && props.show(data)}
      {relative && (
        <>
          <Lines
            of={[
              { name: "curl", text: `curl ${quoted(address(relative))}` },
              grpcLine({ [props.field]: id, version: version || undefined }, props.method),
            ]}
          />
          <ViewLink to={link(`explore/${kind}/${encodeURIComponent(id)}`, { version })} />
        </>
      )}
    </section>
  );
}

interface Document {
  paths: Record<string, { get: { parameters: { example?: string }[] } }>;
}

/** Where ids come from; on a demo network with the example of the API's document. */
function Origin(props: { kind: string; of: [to: string, name: string]; path: string }) {
  const { kind, of: [to, name], path } = props;
  const chain = useWatch<Schemas["LastBlockHeightReply"]>(HEAD, HEAD_MS).data?.chainId;
  const { data } = useRead<Document>(isDemo(chain) ? "openapi.json" : undefined);
  const example = data?.paths[path]?.get.parameters[0]?.example;
  return (
    <Empty>
      Ids are in the <a href={to}>{name}</a>.
      {example && (
        <>
          {" "}
          Or open <a href={link(`explore/${kind}/${example}`)}>an example</a> of this demo network.
        </>
      )}
    </Empty>
  );
}

export function Order(props: { id: string; version: string }) {
  return (
    <Single<Schemas["GetOrderReply"]>
      kind="order"
      title="Order"
      about="An order in its newest version, or in an earlier one by its number. An amendment makes a new version."
      path="api/v2/order"
      method="api.v2.Query/GetOrder"
      field="orderId"
      origin={[link("explore/orders"), "list of orders"]}
      id={props.id}
      version={props.version}
      show={({ order }) => <InMarket id={order.marketId} show={(market) => <Facts isWide of={factsOf(order, market)} />} />}
    />
  );
}

function factsOf(order: Schemas["Order"], market: Market | undefined): [name: string, value: ComponentChildren][] {
  const { peggedOrder: peg, version } = order;
  const earlier = link(`explore/order/${order.id}`, { version: version - 1 });
  return [
    ["Id", <Id id={order.id} />],
    [
      "Status",
      <span data-status={order.status}>
        {word(order.status, "STATUS_")}
        {order.reason !== undefined && `, reason ${order.reason}`}
      </span>,
    ],
    ["Market", <MarketName id={order.marketId} />],
    ["Party", <Party id={order.partyId} />],
    ["Side", <SideName side={order.side} />],
    ["Price", <Price value={order.price} market={market} isNoneAtZero />],
    ["Size", <Size value={order.size} market={market} />],
    ["Remaining", <Size value={order.remaining} market={market} />],
    ["Type", kindOf(order)],
    [
      "Pegged to",
      peg && (
        <>
          {word(peg.reference, "PEGGED_REFERENCE_")}, offset <Price value={peg.offset} market={market} />
        </>
      ),
    ],
    ["Restrictions", [order.postOnly && "Post only", order.reduceOnly && "Reduce only"].filter(Boolean).join(", ")],
    [
      "Version",
      <>
        <span data-version={version}>{version}</span> {version > 1 && <a href={earlier}>Version {version - 1}</a>}
      </>,
    ],
    ["Reference", <Foreign text={order.reference} />],
    ["Liquidity provision", <Id id={order.liquidityProvisionId} />],
    ["Created", <Time ns={order.createdAt} />],
    ["Updated", <Time ns={order.updatedAt} />],
    ["Expires", <Time ns={order.expiresAt} />],
  ].map(([name, value]): [string, ComponentChildren] => [name as string, value || <span class="dim">–</span>]);
}

export function Withdrawal(props: { id: string }) {
  return (
    <Single<Schemas["GetWithdrawalReply"]>
      kind="withdrawal"
      title="Withdrawal"
      about="Status of a withdrawal to a foreign chain."
      path="api/v2/withdrawal"
      method="api.v2.Query/GetWithdrawal"
      field="id"
      origin={[link("explore/withdrawals"), "list of withdrawals"]}
      id={props.id}
      show={({ withdrawal }) => (
        <Facts
          isWide
          of={[
            ["Id", <Id id={withdrawal.id} />],
            ["Status", <span data-status={withdrawal.status}>{word(withdrawal.status, "STATUS_")}</span>],
            ["Party", <Party id={withdrawal.partyId} />],
            ["Amount", <Amount value={withdrawal.amount} asset={withdrawal.asset} isBeside />],
            ["Asset", <AssetName id={withdrawal.asset} />],
            ["Reference", <Foreign text={withdrawal.ref} />],
            ["Created", <Time ns={withdrawal.createdTimestamp} />],
            ["Finalised", <Time ns={withdrawal.withdrawnTimestamp} />],
            ["Foreign transaction", <Foreign text={withdrawal.txHash} />],
            ["Receiver", <Foreign text={withdrawal.ext.erc20?.receiverAddress ?? ""} />],
          ]}
        />
      )}
    />
  );
}

export function OracleSpec(props: { id: string }) {
  return (
    <Single<Schemas["GetOracleSpecReply"]>
      kind="oracle-spec"
      title="Oracle specification"
      about="The source of a market's settlement data or of its end of trading: who signs the data, and the conditions on it."
      path="api/v2/oracle/spec"
      method="api.v2.Query/GetOracleSpec"
      field="oracleSpecId"
      origin={[link("export", { table: "TABLE_MARKETS" }), "history of the table markets, column tradable_instrument"]}
      id={props.id}
      show={({ oracleSpec }) => <Spec spec={oracleSpec.externalDataSourceSpec.spec} />}
    />
  );
}

function Spec(props: { spec: Schemas["DataSourceSpec"] }) {
  const { spec } = props;
  const { data } = spec;
  const oracle = data.external?.oracle;
  const conditions = data.internal?.time.conditions ?? [];
  return (
    <>
      <Facts
        of={[
          ["Id", <Id id={spec.id} />],
          ["Status", <span data-status={spec.status}>{word(spec.status, "STATUS_")}</span>],
          ["Source", oracle ? "Oracle" : "Time of the network"],
          ["Created", <Time ns={spec.createdAt} />],
          ["Updated", <Time ns={spec.updatedAt} />],
        ]}
      />
      {oracle && (
        <>
          <h2>Signers</h2>
          <ul class="plain">
            {oracle.signers.map((signer, row) => (
              <li key={row}>
                <Foreign text={signer.pubKey?.key ?? signer.ethAddress?.address ?? ""} />
              </li>
            ))}
            {oracle.signers.length === 0 && <li class="dim">none</li>}
          </ul>
          <h2>Filters</h2>
          <ul class="plain">
            {oracle.filters.map((filter, row) => (
              <li key={row}>
                <Foreign text={filter.key.name} />{" "}
                <span class="dim">
                  {word(filter.key.type, "TYPE_")}
                  {filter.key.numberDecimalPlaces && `, ${filter.key.numberDecimalPlaces} decimal places`}
                </span>
                <Conditions of={filter.conditions} />
              </li>
            ))}
            {oracle.filters.length === 0 && <li class="dim">none</li>}
          </ul>
        </>
      )}
      {!oracle && <Conditions of={conditions} />}
    </>
  );
}

function Conditions(props: { of: Schemas["Condition"][] }) {
  return (
    <ul class="plain">
      {props.of.map((condition, row) => (
        <li key={row}>
          {word(condition.operator, "OPERATOR_")} <Foreign text={condition.value} />
        </li>
      ))}
    </ul>
  );
}
