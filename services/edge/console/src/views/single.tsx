// What is found by its id: one withdrawal, one oracle spec.
import type { ComponentChildren } from "preact";
import { address, useRead, type Reading, type Schemas } from "../api";
import { isDemo } from "../demo";
import { quoted, word } from "../format";
import { Amount, AssetName, Party } from "../named";
import { Empty, Facts, Field, Foreign, grpcLine, Id, Lines, Notice, Time, ViewLink } from "../parts";
import { go, link, useTyped } from "../route";
import { HEAD, HEAD_MS, useWatch } from "../watch";

const HEX = /^[0-9a-fA-F]{64}$/;

/** One item by its id: the field for the id, and the item. */
function Single<T>(props: {
  kind: string;
  title: string;
  about: string;
  path: string;
  method: string;
  field: string;
  /** The table of the history that has ids. */
  table: string;
  id: string;
  show: (data: T) => ComponentChildren;
}) {
  const { kind, title, id } = props;
  const [typed, setTyped] = useTyped(id, id);
  const relative = id === "" ? undefined : `${props.path}/${encodeURIComponent(id)}`;
  const { data, problem, isLoading }: Reading<T> = useWatch<T>(relative);
  const wrong = typed !== "" && !HEX.test(typed) ? "expected: 64 hex digits" : undefined;
  const submit = (event: Event) => {
    event.preventDefault();
    if (!wrong) go(typed ? `explore/${kind}/${typed}` : `explore/${kind}`);
  };
  return (
    <section class="card" aria-label={title}>
      <form class="filters" onSubmit={submit} role="search" aria-label={`Find: ${title}`}>
        <Field label="Id" value={typed} hint="64 hex digits" wide wrong={wrong} onInput={(value) => setTyped(value.trim())} />
        <button type="submit" class="primary">
          Show
        </button>
      </form>
      <p class="dim">{props.about}</p>
      {id === "" && <Origin kind={kind} table={props.table} path={`/${props.path}/{${props.field}}`} />}
      {problem && <Notice problem={problem} />}
      {isLoading && <Empty>Loading…</Empty>}
      {data && props.show(data)}
      {relative && (
        <>
          <Lines
            of={[
              { name: "curl", text: `curl ${quoted(address(relative))}` },
              grpcLine({ [props.field]: id }, props.method),
            ]}
          />
          <ViewLink to={link(`explore/${kind}/${encodeURIComponent(id)}`)} />
        </>
      )}
    </section>
  );
}

interface Document {
  paths: Record<string, { get: { parameters: { example?: string }[] } }>;
}

/** Where ids come from; on a demo network with the example of the API's document. */
function Origin(props: { kind: string; table: string; path: string }) {
  const { kind, table, path } = props;
  const chain = useWatch<Schemas["LastBlockHeightReply"]>(HEAD, HEAD_MS).data?.chainId;
  const { data } = useRead<Document>(isDemo(chain) ? "openapi.json" : undefined);
  const example = data?.paths[path]?.get.parameters[0]?.example;
  const isMarkets = table === "TABLE_MARKETS";
  return (
    <Empty>
      Ids are in the sealed history: <a href={link("export", { table })}>download the table {word(table, "TABLE_").toLowerCase()}</a>
      {isMarkets ? " and see the column tradable_instrument of a market." : " and see its column id."}
      {example && (
        <>
          {" "}
          Or open <a href={link(`explore/${kind}/${example}`)}>an example</a> of this demo network.
        </>
      )}
    </Empty>
  );
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
      table="TABLE_WITHDRAWALS"
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
      table="TABLE_MARKETS"
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
