// What can be looked at in Explore: one row per list, with its path, its filters and its columns.
import type { ComponentChildren } from "preact";
import type { Schemas } from "../api";
import { counted, word } from "../format";
import { Amount, Foreign, Id } from "../parts";
import { link } from "../route";

export interface Filter {
  /** As the API calls it. */
  name: string;
  label: string;
  /** What it looks like; other text is not sent. */
  form: RegExp;
  hint?: string;
  /** The names to choose from, instead of a text. */
  choices?: [value: string, name: string][];
}

export interface Column<Row> {
  name: string;
  /** Numbers stand on the right. */
  isNumber?: boolean;
  cell: (row: Row) => ComponentChildren;
}

export interface Page<Row> {
  edges: { node: Row; cursor: string }[];
  pageInfo: Schemas["PageInfo"];
}

// A table takes rows of its own kind only; the list of all lists cannot say which.
export interface List<Row = any> {
  name: string;
  title: string;
  about: string;
  path: string;
  /** As gRPC calls it. */
  method: string;
  filters: Filter[];
  /** One of the filters at least must be given. */
  needsFilter?: string;
  columns: Column<Row>[];
  /** The page in an answer; a list without pages gives its rows. */
  page?: (answer: never) => Page<Row>;
  rows?: (answer: never) => Row[];
}

const HEX = /^[0-9a-fA-F]{64}$/;
const PARTY = /^([0-9a-fA-F]{64}|network)$/;
const ASSET = /^[A-Za-z0-9_-]{1,64}$/;
const NUMBER = /^\d{1,18}$/;

const ID_HINT = "64 hex digits";

const ofParty = (party: string) => <Id id={party} href={link("explore/accounts", { party })} />;
const ofMarket = (market: string) => <Id id={market} href={link("markets", { market })} />;

const accounts: List<Schemas["AccountBalance"]> = {
  name: "accounts",
  title: "Accounts",
  about: "What a party, or a market, holds now.",
  path: "accounts",
  method: "api.v2.Query/ListAccounts",
  filters: [
    { name: "party", label: "Party", form: PARTY, hint: `${ID_HINT}, or network` },
    { name: "market", label: "Market", form: HEX, hint: ID_HINT },
  ],
  needsFilter: "Give a party or a market: all accounts of a network are too many to look at.",
  columns: [
    { name: "Party", cell: (row) => ofParty(row.party) },
    { name: "Market", cell: (row) => ofMarket(row.market) },
    { name: "Type", cell: (row) => word(row.type, "ACCOUNT_TYPE_") },
    { name: "Asset", cell: (row) => <Id id={row.asset} /> },
    { name: "Balance", isNumber: true, cell: (row) => <Amount value={row.balance} /> },
  ],
  rows: (answer: Schemas["ListAccountsReply"]) => answer.accounts,
};

const delegations: List<Schemas["Delegation"]> = {
  name: "delegations",
  title: "Delegations",
  about: "What parties delegate to validators, by epoch.",
  path: "api/v2/delegations",
  method: "api.v2.Query/ListDelegations",
  filters: [
    { name: "partyId", label: "Party", form: HEX, hint: ID_HINT },
    { name: "nodeId", label: "Validator", form: HEX, hint: ID_HINT },
    { name: "epochId", label: "Epoch", form: NUMBER },
  ],
  columns: [
    { name: "Epoch", cell: (row) => row.epochSeq },
    { name: "Party", cell: (row) => ofParty(row.party) },
    { name: "Validator", cell: (row) => <Id id={row.nodeId} href={link("explore/delegations", { nodeId: row.nodeId })} /> },
    { name: "Amount", isNumber: true, cell: (row) => <Amount value={row.amount} /> },
  ],
  page: (answer: Schemas["ListDelegationsReply"]) => answer.delegations,
};

const rewards: List<Schemas["EpochRewardSummary"]> = {
  name: "rewards",
  title: "Rewards",
  about: "What was paid in an epoch, summed over parties.",
  path: "api/v2/rewards/epoch/summaries",
  method: "api.v2.Query/ListEpochRewardSummaries",
  filters: [
    { name: "filter.fromEpoch", label: "From epoch", form: NUMBER },
    { name: "filter.toEpoch", label: "To epoch", form: NUMBER },
    { name: "filter.assetIds", label: "Asset", form: ASSET },
    { name: "filter.marketIds", label: "Market", form: HEX, hint: ID_HINT },
  ],
  columns: [
    { name: "Epoch", cell: (row) => row.epoch },
    { name: "Type", cell: (row) => <Foreign text={word(row.rewardType, "ACCOUNT_TYPE_")} /> },
    { name: "Market", cell: (row) => ofMarket(row.marketId) },
    { name: "Asset", cell: (row) => <Id id={row.assetId} /> },
    { name: "Amount", isNumber: true, cell: (row) => <Amount value={row.amount} /> },
  ],
  page: (answer: Schemas["ListEpochRewardSummariesReply"]) => answer.summaries,
};

const STATUS = "PROTOCOL_UPGRADE_PROPOSAL_STATUS_";

const proposals: List<Schemas["ProtocolUpgradeProposal"]> = {
  name: "proposals",
  title: "Proposals",
  about: "Upgrades of the protocol that validators propose.",
  path: "api/v2/upgrade/proposals",
  method: "api.v2.Query/ListProtocolUpgradeProposals",
  filters: [
    {
      name: "status",
      label: "Status",
      form: /^[A-Z_]+$/,
      choices: [
        ["", "Any"],
        [`${STATUS}PENDING`, "Pending"],
        [`${STATUS}APPROVED`, "Approved"],
        [`${STATUS}REJECTED`, "Rejected"],
      ],
    },
    { name: "approvedBy", label: "Approved by", form: /^.{1,256}$/s },
  ],
  columns: [
    { name: "Height", cell: (row) => <Amount value={row.upgradeBlockHeight} /> },
    { name: "Release", cell: (row) => <Foreign text={row.networkReleaseTag} /> },
    { name: "Status", cell: (row) => word(row.status, STATUS) },
    {
      name: "Approved by",
      cell: (row) =>
        row.approvers.length === 0 ? (
          <span class="dim">nobody</span>
        ) : (
          <details>
            <summary>{counted(row.approvers.length, "validator")}</summary>
            <ul class="plain">
              {row.approvers.map((key) => (
                <li key={key}>
                  <Foreign text={key} />
                </li>
              ))}
            </ul>
          </details>
        ),
    },
  ],
  page: (answer: Schemas["ListProtocolUpgradeProposalsReply"]) => answer.protocolUpgradeProposals,
};

export const LISTS: readonly List[] = [delegations, accounts, rewards, proposals];
