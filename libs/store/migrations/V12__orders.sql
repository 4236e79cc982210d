-- What orders, the book, deposits and withdrawals are read from (contract 4.22 to 4.27).
--
-- Rows of history that a database already holds are taken over at the end.

-- Whether a version of an order is live: it rests in the book, or is parked and may return to it.
CREATE FUNCTION is_live_order(status int2, remaining int8, time_in_force int2) RETURNS bool LANGUAGE sql IMMUTABLE AS $$
    SELECT status = 8 OR status IN (1, 7) AND remaining > 0 AND time_in_force IN (1, 2, 5, 6)
$$;

-- The newest version of each order, and the time of its first one.
CREATE TABLE orders_current (
    id               text COLLATE "C" NOT NULL,
    first_time       timestamptz NOT NULL,
    market_id        text COLLATE "C" NOT NULL,
    party_id         text COLLATE "C" NOT NULL,
    side             int2 NOT NULL,
    price            bigamount NOT NULL,
    size             int8 NOT NULL,
    remaining        int8 NOT NULL,
    time_in_force    int2 NOT NULL,
    type             int2 NOT NULL,
    status           int2 NOT NULL,
    reference        text,
    reason           int2,
    version          int4 NOT NULL,
    batch_id         int4 NOT NULL,
    pegged_offset    bigamount,
    pegged_reference int2,
    lp_id            text COLLATE "C",
    created_at       timestamptz NOT NULL,
    updated_at       timestamptz,
    expires_at       timestamptz,
    post_only        bool NOT NULL,
    reduce_only      bool NOT NULL,
    block_time       timestamptz NOT NULL,
    seq_num          int8 NOT NULL,
    is_live          bool NOT NULL,
    PRIMARY KEY (id)
) WITH (autovacuum_vacuum_scale_factor = 0.02);
-- NULLS FIRST is the mark of the walks that filter (see V5__walks.sql). The status at the end of a key is compared in the
-- index, so that a walk fetches the rows with the status only.
CREATE INDEX orders_current_first_time_id_idx ON orders_current (first_time, id);
CREATE INDEX orders_current_status_idx ON orders_current (status, first_time NULLS FIRST, id);
CREATE INDEX orders_current_market_id_idx ON orders_current (market_id, first_time NULLS FIRST, id, status);
CREATE INDEX orders_current_party_id_idx ON orders_current (party_id, first_time NULLS FIRST, id, status);
CREATE INDEX orders_current_party_id_market_id_idx
    ON orders_current (party_id, market_id, first_time NULLS FIRST, id, status);
CREATE INDEX orders_current_live_idx ON orders_current (first_time NULLS FIRST, id) WHERE is_live;
CREATE INDEX orders_current_live_market_id_idx ON orders_current (market_id, first_time NULLS FIRST, id) WHERE is_live;
CREATE INDEX orders_current_live_party_id_idx ON orders_current (party_id, first_time NULLS FIRST, id) WHERE is_live;
-- The book.
CREATE INDEX orders_current_book_idx ON orders_current (market_id, side, price) INCLUDE (remaining)
    WHERE is_live AND status <> 8 AND price <> 0;

-- Nested loops over indexes: a plan is made once per session, perhaps for a bulk load, and must not read whole tables for
-- each later block.
CREATE FUNCTION keep_orders_current() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET jit = off
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    INSERT INTO orders_current AS kept (
        id, first_time,
        market_id, party_id, side, price, size, remaining, time_in_force, type, status, reference, reason, version,
        batch_id, pegged_offset, pegged_reference, lp_id, created_at, updated_at, expires_at, post_only, reduce_only,
        block_time, seq_num, is_live
    )
    SELECT DISTINCT ON (id)
        id, min(block_time) OVER (PARTITION BY id),
        market_id, party_id, side, price, size, remaining, time_in_force, type, status, reference, reason, version,
        batch_id, pegged_offset, pegged_reference, lp_id, created_at, updated_at, expires_at, post_only, reduce_only,
        block_time, seq_num, is_live_order(status, remaining, time_in_force)
    FROM inserted
    ORDER BY id, block_time DESC, seq_num DESC
    ON CONFLICT (id) DO UPDATE
        SET market_id = EXCLUDED.market_id, party_id = EXCLUDED.party_id, side = EXCLUDED.side, price = EXCLUDED.price,
            size = EXCLUDED.size, remaining = EXCLUDED.remaining, time_in_force = EXCLUDED.time_in_force,
            type = EXCLUDED.type, status = EXCLUDED.status, reference = EXCLUDED.reference, reason = EXCLUDED.reason,
            version = EXCLUDED.version, batch_id = EXCLUDED.batch_id, pegged_offset = EXCLUDED.pegged_offset,
            pegged_reference = EXCLUDED.pegged_reference, lp_id = EXCLUDED.lp_id, created_at = EXCLUDED.created_at,
            updated_at = EXCLUDED.updated_at, expires_at = EXCLUDED.expires_at, post_only = EXCLUDED.post_only,
            reduce_only = EXCLUDED.reduce_only, block_time = EXCLUDED.block_time, seq_num = EXCLUDED.seq_num,
            is_live = EXCLUDED.is_live
        WHERE (EXCLUDED.block_time, EXCLUDED.seq_num) >= (kept.block_time, kept.seq_num);

    -- Versions that are older than the first known one.
    UPDATE orders_current AS kept SET first_time = older.first_time
    FROM (SELECT id, min(block_time) AS first_time FROM inserted GROUP BY id) AS older
    WHERE kept.id = older.id AND older.first_time < kept.first_time;
    RETURN NULL;
END
$$;
CREATE TRIGGER keep_orders_current AFTER INSERT ON orders
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION keep_orders_current();

-- Lists of orders are read from orders_current, so nothing uses these.
DROP INDEX orders_party_id_created_at_id_idx, orders_market_id_created_at_id_idx;

-- Of an id with two parties in one block, which the key of the history allows, one is the newest.
CREATE TABLE deposits_current (
    id                 text COLLATE "C" NOT NULL,
    status             text COLLATE "C" NOT NULL,
    party_id           text COLLATE "C" NOT NULL,
    asset              text COLLATE "C" NOT NULL,
    amount             bigamount,
    foreign_tx_hash    text NOT NULL,
    credited_timestamp timestamptz NOT NULL,
    created_timestamp  timestamptz NOT NULL,
    block_time         timestamptz NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX deposits_current_created_timestamp_id_idx ON deposits_current (created_timestamp, id);
CREATE INDEX deposits_current_party_id_idx ON deposits_current (party_id, created_timestamp NULLS FIRST, id);
CREATE INDEX deposits_current_asset_idx ON deposits_current (asset, created_timestamp NULLS FIRST, id);
CREATE INDEX deposits_current_status_idx ON deposits_current (status, created_timestamp NULLS FIRST, id);

CREATE FUNCTION keep_deposits_current() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET jit = off AS $$
BEGIN
    INSERT INTO deposits_current AS kept (
        id, status, party_id, asset, amount, foreign_tx_hash, credited_timestamp, created_timestamp, block_time
    )
    SELECT DISTINCT ON (id)
        id, status, party_id, asset, amount, foreign_tx_hash, credited_timestamp, created_timestamp, block_time
    FROM inserted
    ORDER BY id, block_time DESC, party_id DESC
    ON CONFLICT (id) DO UPDATE
        SET status = EXCLUDED.status, party_id = EXCLUDED.party_id, asset = EXCLUDED.asset, amount = EXCLUDED.amount,
            foreign_tx_hash = EXCLUDED.foreign_tx_hash, credited_timestamp = EXCLUDED.credited_timestamp,
            created_timestamp = EXCLUDED.created_timestamp, block_time = EXCLUDED.block_time
        WHERE (EXCLUDED.block_time, EXCLUDED.party_id) >= (kept.block_time, kept.party_id);
    RETURN NULL;
END
$$;
CREATE TRIGGER keep_deposits_current AFTER INSERT ON deposits
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION keep_deposits_current();

CREATE TABLE withdrawals_current (
    id                  text COLLATE "C" NOT NULL,
    party_id            text COLLATE "C" NOT NULL,
    amount              numeric,
    asset               text COLLATE "C" NOT NULL,
    status              text COLLATE "C" NOT NULL,
    ref                 text NOT NULL,
    foreign_tx_hash     text NOT NULL,
    created_timestamp   timestamptz NOT NULL,
    withdrawn_timestamp timestamptz NOT NULL,
    ext                 jsonb NOT NULL,
    block_time          timestamptz NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX withdrawals_current_created_timestamp_id_idx ON withdrawals_current (created_timestamp, id);
CREATE INDEX withdrawals_current_party_id_idx ON withdrawals_current (party_id, created_timestamp NULLS FIRST, id);
CREATE INDEX withdrawals_current_asset_idx ON withdrawals_current (asset, created_timestamp NULLS FIRST, id);
CREATE INDEX withdrawals_current_status_idx ON withdrawals_current (status, created_timestamp NULLS FIRST, id);

CREATE FUNCTION keep_withdrawals_current() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET jit = off AS $$
BEGIN
    INSERT INTO withdrawals_current AS kept (
        id, party_id, amount, asset, status, ref, foreign_tx_hash, created_timestamp, withdrawn_timestamp, ext, block_time
    )
    SELECT DISTINCT ON (id)
        id, party_id, amount, asset, status, ref, foreign_tx_hash, created_timestamp, withdrawn_timestamp, ext, block_time
    FROM inserted
    ORDER BY id, block_time DESC, party_id DESC
    ON CONFLICT (id) DO UPDATE
        SET party_id = EXCLUDED.party_id, amount = EXCLUDED.amount, asset = EXCLUDED.asset, status = EXCLUDED.status,
            ref = EXCLUDED.ref, foreign_tx_hash = EXCLUDED.foreign_tx_hash,
            created_timestamp = EXCLUDED.created_timestamp, withdrawn_timestamp = EXCLUDED.withdrawn_timestamp,
            ext = EXCLUDED.ext, block_time = EXCLUDED.block_time
        WHERE (EXCLUDED.block_time, EXCLUDED.party_id) >= (kept.block_time, kept.party_id);
    RETURN NULL;
END
$$;
CREATE TRIGGER keep_withdrawals_current AFTER INSERT ON withdrawals
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION keep_withdrawals_current();

-- Rows that are stored already pass through the same triggers.
CREATE TEMPORARY TABLE taken_orders (LIKE orders);
CREATE TEMPORARY TABLE taken_deposits (LIKE deposits);
CREATE TEMPORARY TABLE taken_withdrawals (LIKE withdrawals);
CREATE TRIGGER take AFTER INSERT ON taken_orders
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION keep_orders_current();
CREATE TRIGGER take AFTER INSERT ON taken_deposits
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION keep_deposits_current();
CREATE TRIGGER take AFTER INSERT ON taken_withdrawals
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION keep_withdrawals_current();
INSERT INTO taken_orders SELECT * FROM orders;
INSERT INTO taken_deposits SELECT * FROM deposits;
INSERT INTO taken_withdrawals SELECT * FROM withdrawals;
DROP TABLE taken_orders, taken_deposits, taken_withdrawals;
