-- Tables that are no export of their own (DATA_MODEL section 3): accounts, histories that only segments
-- carry, and the one-row tables of the chain and of this node.

CREATE TYPE oracle_spec_status AS ENUM (
    'STATUS_UNSPECIFIED',
    'STATUS_ACTIVE',
    'STATUS_DEACTIVATED'
);

CREATE TYPE protocol_upgrade_proposal_status AS ENUM (
    'PROTOCOL_UPGRADE_PROPOSAL_STATUS_UNSPECIFIED',
    'PROTOCOL_UPGRADE_PROPOSAL_STATUS_PENDING',
    'PROTOCOL_UPGRADE_PROPOSAL_STATUS_APPROVED',
    'PROTOCOL_UPGRADE_PROPOSAL_STATUS_REJECTED'
);

CREATE TABLE accounts (
    id         text COLLATE "C" NOT NULL,
    party_id   text COLLATE "C",
    asset_id   text COLLATE "C" NOT NULL,
    market_id  text COLLATE "C",
    type       int4,
    tx_hash    text COLLATE "C" NOT NULL,
    block_time timestamptz NOT NULL,
    PRIMARY KEY (id)
);
CREATE UNIQUE INDEX accounts_party_id_asset_id_market_id_type_idx
    ON accounts (party_id, asset_id, market_id, type);
CREATE INDEX accounts_market_id_idx ON accounts (market_id);

CREATE TABLE oracle_specs (
    id                  text COLLATE "C" NOT NULL,
    created_at          timestamptz NOT NULL,
    updated_at          timestamptz NOT NULL,
    signers             jsonb,
    filters             jsonb,
    status              oracle_spec_status NOT NULL,
    tx_hash             text COLLATE "C" NOT NULL,
    block_time          timestamptz NOT NULL,
    internal_conditions jsonb,
    PRIMARY KEY (id, block_time)
);

CREATE TABLE protocol_upgrade_proposals (
    upgrade_block_height int8 NOT NULL,
    network_release_tag  text COLLATE "C" NOT NULL,
    approvers            text[] NOT NULL,
    status               protocol_upgrade_proposal_status NOT NULL,
    tx_hash              text COLLATE "C" NOT NULL,
    block_time           timestamptz NOT NULL,
    PRIMARY KEY (block_time, upgrade_block_height, network_release_tag)
);

CREATE TABLE network_limits (
    block_time                  timestamptz NOT NULL,
    tx_hash                     text COLLATE "C" NOT NULL,
    can_propose_market          bool NOT NULL,
    can_propose_asset           bool NOT NULL,
    propose_market_enabled      bool NOT NULL,
    propose_asset_enabled       bool NOT NULL,
    genesis_loaded              bool NOT NULL,
    propose_market_enabled_from timestamptz NOT NULL,
    propose_asset_enabled_from  timestamptz NOT NULL,
    PRIMARY KEY (block_time)
);

CREATE TABLE network_parameters (
    key        text COLLATE "C" NOT NULL,
    value      text NOT NULL,
    tx_hash    text COLLATE "C" NOT NULL,
    block_time timestamptz NOT NULL,
    PRIMARY KEY (key, block_time)
);

CREATE TABLE chain (
    id           text COLLATE "C" NOT NULL,
    onerow_check bool NOT NULL DEFAULT true,
    CHECK (onerow_check),
    PRIMARY KEY (onerow_check)
);

CREATE TABLE epochs (
    id          int8 NOT NULL,
    start_time  timestamptz NOT NULL,
    expire_time timestamptz NOT NULL,
    end_time    timestamptz,
    tx_hash     text COLLATE "C" NOT NULL,
    block_time  timestamptz NOT NULL,
    PRIMARY KEY (id, block_time)
);

CREATE TABLE last_snapshot_span (
    onerow_check bool NOT NULL DEFAULT true,
    from_height  int8 NOT NULL,
    to_height    int8 NOT NULL,
    CHECK (onerow_check),
    PRIMARY KEY (onerow_check)
);

CREATE TABLE node_state (
    onerow_check   bool NOT NULL DEFAULT true,
    upgrade_ready  bool NOT NULL,
    upgrade_height int8,
    updated_at     timestamptz NOT NULL,
    CHECK (onerow_check),
    PRIMARY KEY (onerow_check)
);
