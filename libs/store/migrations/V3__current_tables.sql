-- The newest row per key, kept by AFTER INSERT statement triggers (DATA_MODEL section 3), so that any loader
-- writes the history tables only.
--
-- Each trigger sorts the statement's own rows once, keeps the newest per key and upserts them in key order
-- (two writers of the same keys then wait for each other instead of deadlocking). The guards compare with the
-- row as it is when its lock is held, so replays and backfills of old rows change nothing.
--
-- History is append-only: an UPDATE, DELETE or TRUNCATE of a history table does not reach these tables.
-- Functions pin the search path of the migration, because restores and subscriptions run with an empty one, and
-- switch JIT off: a plan made for a bulk load stays cached, and compiling it costs 20 ms for every later block.

CREATE TABLE current_balances (
    account_id text COLLATE "C" NOT NULL,
    tx_hash    text COLLATE "C" NOT NULL,
    block_time timestamptz NOT NULL,
    balance    bigamount NOT NULL,
    PRIMARY KEY (account_id)
);

CREATE TABLE delegations_current (
    party_id   text COLLATE "C" NOT NULL,
    node_id    text COLLATE "C" NOT NULL,
    epoch_id   int8 NOT NULL,
    amount     bigamount,
    tx_hash    text COLLATE "C" NOT NULL,
    block_time timestamptz NOT NULL,
    seq_num    int8 NOT NULL,
    PRIMARY KEY (party_id, node_id, epoch_id)
);
CREATE INDEX delegations_current_epoch_id_party_id_node_id_idx
    ON delegations_current (epoch_id, party_id, node_id);
CREATE INDEX delegations_current_party_id_epoch_id_node_id_idx
    ON delegations_current (party_id, epoch_id, node_id);
CREATE INDEX delegations_current_node_id_epoch_id_party_id_idx
    ON delegations_current (node_id, epoch_id, party_id);

CREATE TABLE protocol_upgrade_proposals_current (
    upgrade_block_height int8 NOT NULL,
    network_release_tag  text COLLATE "C" NOT NULL,
    approvers            text[] NOT NULL,
    status               protocol_upgrade_proposal_status NOT NULL,
    tx_hash              text COLLATE "C" NOT NULL,
    block_time           timestamptz NOT NULL,
    PRIMARY KEY (upgrade_block_height, network_release_tag)
);
CREATE INDEX protocol_upgrade_proposals_current_approvers_idx
    ON protocol_upgrade_proposals_current USING gin (approvers);

CREATE TABLE network_parameters_current (
    key        text COLLATE "C" NOT NULL,
    value      text NOT NULL,
    tx_hash    text COLLATE "C" NOT NULL,
    block_time timestamptz NOT NULL,
    PRIMARY KEY (key)
);

CREATE TABLE last_block (
    onerow_check bool NOT NULL DEFAULT true,
    block_time   timestamptz NOT NULL,
    height       int8 NOT NULL,
    hash         text COLLATE "C" NOT NULL,
    CHECK (onerow_check),
    PRIMARY KEY (onerow_check)
);

-- The head. Tells listeners on `mesh_head` the new height, once per statement, when the head advanced.
CREATE FUNCTION keep_last_block() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT SET jit = off AS $$
DECLARE
    head int8;
BEGIN
    INSERT INTO last_block AS kept (block_time, height, hash)
    SELECT block_time, height, hash FROM inserted ORDER BY height DESC LIMIT 1
    ON CONFLICT (onerow_check) DO UPDATE
        SET block_time = EXCLUDED.block_time, height = EXCLUDED.height, hash = EXCLUDED.hash
        WHERE EXCLUDED.height > kept.height
    RETURNING height INTO head;
    IF head IS NOT NULL THEN
        PERFORM pg_notify('mesh_head', head::text);
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER keep_last_block AFTER INSERT ON blocks
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION keep_last_block();

CREATE FUNCTION keep_current_balances() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT SET jit = off AS $$
BEGIN
    INSERT INTO current_balances AS kept (account_id, tx_hash, block_time, balance)
    SELECT DISTINCT ON (account_id) account_id, tx_hash, block_time, balance
    FROM inserted
    ORDER BY account_id, block_time DESC
    ON CONFLICT (account_id) DO UPDATE
        SET tx_hash = EXCLUDED.tx_hash, block_time = EXCLUDED.block_time, balance = EXCLUDED.balance
        WHERE EXCLUDED.block_time >= kept.block_time;
    RETURN NULL;
END
$$;
CREATE TRIGGER keep_current_balances AFTER INSERT ON balances
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION keep_current_balances();

CREATE FUNCTION keep_delegations_current() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT SET jit = off AS $$
BEGIN
    INSERT INTO delegations_current AS kept (party_id, node_id, epoch_id, amount, tx_hash, block_time, seq_num)
    SELECT DISTINCT ON (party_id, node_id, epoch_id)
        party_id, node_id, epoch_id, amount, tx_hash, block_time, seq_num
    FROM inserted
    ORDER BY party_id, node_id, epoch_id, block_time DESC, seq_num DESC
    ON CONFLICT (party_id, node_id, epoch_id) DO UPDATE
        SET amount = EXCLUDED.amount, tx_hash = EXCLUDED.tx_hash,
            block_time = EXCLUDED.block_time, seq_num = EXCLUDED.seq_num
        WHERE (EXCLUDED.block_time, EXCLUDED.seq_num) >= (kept.block_time, kept.seq_num);
    RETURN NULL;
END
$$;
CREATE TRIGGER keep_delegations_current AFTER INSERT ON delegations
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION keep_delegations_current();

CREATE FUNCTION keep_network_parameters_current() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT SET jit = off AS $$
BEGIN
    INSERT INTO network_parameters_current AS kept (key, value, tx_hash, block_time)
    SELECT DISTINCT ON (key) key, value, tx_hash, block_time
    FROM inserted
    ORDER BY key, block_time DESC
    ON CONFLICT (key) DO UPDATE
        SET value = EXCLUDED.value, tx_hash = EXCLUDED.tx_hash, block_time = EXCLUDED.block_time
        WHERE EXCLUDED.block_time >= kept.block_time;
    RETURN NULL;
END
$$;
CREATE TRIGGER keep_network_parameters_current AFTER INSERT ON network_parameters
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION keep_network_parameters_current();

CREATE FUNCTION keep_protocol_upgrade_proposals_current() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT SET jit = off AS $$
BEGIN
    INSERT INTO protocol_upgrade_proposals_current AS kept
        (upgrade_block_height, network_release_tag, approvers, status, tx_hash, block_time)
    SELECT DISTINCT ON (upgrade_block_height, network_release_tag)
        upgrade_block_height, network_release_tag, approvers, status, tx_hash, block_time
    FROM inserted
    ORDER BY upgrade_block_height, network_release_tag, block_time DESC
    ON CONFLICT (upgrade_block_height, network_release_tag) DO UPDATE
        SET approvers = EXCLUDED.approvers, status = EXCLUDED.status,
            tx_hash = EXCLUDED.tx_hash, block_time = EXCLUDED.block_time
        WHERE EXCLUDED.block_time >= kept.block_time;
    RETURN NULL;
END
$$;
CREATE TRIGGER keep_protocol_upgrade_proposals_current AFTER INSERT ON protocol_upgrade_proposals
    REFERENCING NEW TABLE AS inserted
    FOR EACH STATEMENT EXECUTE FUNCTION keep_protocol_upgrade_proposals_current();
