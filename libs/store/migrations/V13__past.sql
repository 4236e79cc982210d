-- What reads as of a block (contract 11) need beside the history tables.

-- Microseconds since the Unix epoch. The bodies of this function and the next are bound when they are created: a restore,
-- ANALYZE by autovacuum and, from PostgreSQL 17 on, CREATE INDEX run them with a search path that lacks this schema.
CREATE FUNCTION micros(given timestamptz) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN date_part('epoch', given - timestamptz '1970-01-01 00:00:00+00') * 1000000;

-- The time in which an order may be live, as a box: owner (a market or a party, hashed) by time. One without an end lasts.
CREATE FUNCTION lifetime(owner text, since timestamptz, until timestamptz) RETURNS box
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN box(
        point(hashtext(owner), micros(since)),
        point(hashtext(owner), CASE WHEN until IS NULL THEN 9e15 ELSE micros(until) END)
    );

-- The orders that were live at a time: those whose lifetime contains it, of which the version of the time decides. An order
-- that was never live is in neither index.
CREATE INDEX orders_current_lifetime_market_idx ON orders_current
    USING gist (lifetime(market_id, first_time, CASE WHEN NOT is_live THEN block_time END))
    WHERE is_live OR block_time > first_time;
CREATE INDEX orders_current_lifetime_party_idx ON orders_current
    USING gist (lifetime(party_id, first_time, CASE WHEN NOT is_live THEN block_time END))
    WHERE is_live OR block_time > first_time;

-- The time of the first row of each epoch, so that a page as of a block begins at the newest epoch of then.
CREATE TABLE first_rows_of_epochs (
    history    text COLLATE "C" NOT NULL,
    epoch_id   int8 NOT NULL,
    first_time timestamptz NOT NULL,
    PRIMARY KEY (history, epoch_id)
);

CREATE FUNCTION keep_first_rows_of_epochs() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET jit = off AS $$
BEGIN
    INSERT INTO first_rows_of_epochs AS kept (history, epoch_id, first_time)
    SELECT TG_TABLE_NAME, epoch_id, min(block_time) FROM inserted GROUP BY epoch_id ORDER BY epoch_id
    ON CONFLICT (history, epoch_id) DO UPDATE SET first_time = EXCLUDED.first_time
        WHERE EXCLUDED.first_time < kept.first_time;
    RETURN NULL;
END
$$;
CREATE TRIGGER keep_first_rows_of_epochs AFTER INSERT ON delegations
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION keep_first_rows_of_epochs();
CREATE TRIGGER keep_first_rows_of_epochs AFTER INSERT ON rewards
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION keep_first_rows_of_epochs();

INSERT INTO first_rows_of_epochs (history, epoch_id, first_time)
SELECT 'delegations', epoch_id, min(block_time) FROM delegations GROUP BY epoch_id
UNION ALL
SELECT 'rewards', epoch_id, min(block_time) FROM rewards GROUP BY epoch_id;

-- The version of a time is one step down an index, as in the other history tables. NULLS FIRST is the mark of the walks that
-- filter (see V5__walks.sql).
CREATE INDEX delegations_party_id_node_id_epoch_id_block_time_seq_num_idx
    ON delegations (party_id, node_id, epoch_id, block_time, seq_num);
CREATE INDEX deposits_created_timestamp_id_idx ON deposits (created_timestamp, id);
CREATE INDEX deposits_marked_created_timestamp_id_idx ON deposits (created_timestamp NULLS FIRST, id);
CREATE INDEX deposits_party_id_created_timestamp_id_idx ON deposits (party_id, created_timestamp NULLS FIRST, id);
CREATE INDEX deposits_asset_created_timestamp_id_idx ON deposits (asset, created_timestamp NULLS FIRST, id);
CREATE INDEX withdrawals_created_timestamp_id_idx ON withdrawals (created_timestamp, id);
CREATE INDEX withdrawals_marked_created_timestamp_id_idx ON withdrawals (created_timestamp NULLS FIRST, id);
CREATE INDEX withdrawals_party_id_created_timestamp_id_idx ON withdrawals (party_id, created_timestamp NULLS FIRST, id);
CREATE INDEX withdrawals_asset_created_timestamp_id_idx ON withdrawals (asset, created_timestamp NULLS FIRST, id);
CREATE INDEX protocol_upgrade_proposals_height_tag_block_time_idx
    ON protocol_upgrade_proposals (upgrade_block_height, network_release_tag, block_time);
