-- Reads as of a block that read less.

-- The book of a block is read from the versions that rested then, found by the lengths of their stays, as live orders are by the
-- lengths of their lives (V15). Before, the history of each live order was searched for its version.

-- Versions of orders that rested in the book and were replaced by a version of a later block; those that rest now are in
-- orders_current. A version rested from its own block to that of the next one.
CREATE TABLE orders_rested (
    id        text COLLATE "C" NOT NULL,
    since     timestamptz NOT NULL,
    until     timestamptz NOT NULL,
    market_id text COLLATE "C" NOT NULL,
    side      int2 NOT NULL,
    price     bigamount NOT NULL,
    remaining int8 NOT NULL,
    PRIMARY KEY (id, since)
);
CREATE INDEX orders_rested_book_idx ON orders_rested (market_id, lifetime_class(since, until), since)
    INCLUDE (until, side, price, remaining);

-- Versions of the same orders are written by one session at a time: keep_orders_current(), whose trigger comes first in the
-- order of their names, has locked these orders.
CREATE FUNCTION keep_orders_rested() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET jit = off
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    -- Versions of the same blocks that are not the last ones of them any more.
    DELETE FROM orders_rested AS kept USING inserted WHERE kept.id = inserted.id AND kept.since = inserted.block_time;

    -- Of each order the stays from the last version before the inserted ones on.
    INSERT INTO orders_rested AS kept (id, since, until, market_id, side, price, remaining)
    SELECT id, block_time, until, market_id, side, price, remaining
    FROM (
        SELECT version.*, lead(block_time) OVER (PARTITION BY id ORDER BY block_time, seq_num) AS until
        FROM (SELECT id AS changed, min(block_time) AS first_time FROM inserted GROUP BY id) AS orders_changed
        CROSS JOIN LATERAL (
            (
                SELECT id, market_id, side, price, remaining, status, time_in_force, block_time, seq_num FROM orders
                WHERE id = changed AND block_time < first_time
                ORDER BY block_time DESC, seq_num DESC LIMIT 1
            )
            UNION ALL
            SELECT id, market_id, side, price, remaining, status, time_in_force, block_time, seq_num FROM orders
            WHERE id = changed AND block_time >= first_time
        ) AS version
    ) AS version
    WHERE until > block_time AND status <> 8 AND price <> 0 AND is_live_order(status, remaining, time_in_force)
    ON CONFLICT (id, since) DO UPDATE SET until = EXCLUDED.until WHERE kept.until <> EXCLUDED.until;
    RETURN NULL;
END
$$;
CREATE TRIGGER keep_orders_rested AFTER INSERT ON orders
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION keep_orders_rested();

-- Rows that are stored already.
INSERT INTO orders_rested (id, since, until, market_id, side, price, remaining)
SELECT id, block_time, until, market_id, side, price, remaining
FROM (SELECT *, lead(block_time) OVER (PARTITION BY id ORDER BY block_time, seq_num) AS until FROM orders) AS version
WHERE until > block_time AND status <> 8 AND price <> 0 AND is_live_order(status, remaining, time_in_force);

-- The book of now with the times of its versions, of which that of a block leaves out the later ones.
DROP INDEX orders_current_book_idx;
CREATE INDEX orders_current_book_idx ON orders_current (market_id, side, price) INCLUDE (remaining, block_time)
    WHERE is_live AND status <> 8 AND price <> 0;

-- The balance of a time is read from the index alone.
CREATE INDEX balances_account_id_block_time_balance_idx ON balances (account_id, block_time) INCLUDE (balance);
DROP INDEX balances_account_id_block_time_idx;
ALTER INDEX balances_account_id_block_time_balance_idx RENAME TO balances_account_id_block_time_idx;
