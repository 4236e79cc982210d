-- The newest balance of every account as of the end of the span (set by next_span.sql), computed from history: the
-- table of this name knows later blocks. Walks the index (account_id, block_time) from one account to the next.
COPY (
    WITH RECURSIVE known (account_id) AS (
        (SELECT account_id FROM balances ORDER BY account_id LIMIT 1)
        UNION ALL
        SELECT following.account_id FROM known CROSS JOIN LATERAL (
            SELECT account_id FROM balances WHERE account_id > known.account_id ORDER BY account_id LIMIT 1
        ) AS following
    )
    SELECT newest.* FROM known CROSS JOIN LATERAL (
        SELECT account_id, tx_hash, block_time, balance FROM balances
        WHERE account_id = known.account_id
            AND block_time <= current_setting('mesh.time_to')::timestamptz
        ORDER BY block_time DESC LIMIT 1
    ) AS newest
    ORDER BY account_id
) TO STDOUT (FORMAT csv, HEADER)
