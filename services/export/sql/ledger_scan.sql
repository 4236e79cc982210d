-- The ledger entries of some accounts in the next whole blocks after a key, in the order of the blocks, and the head
-- they were read at. Columns as in ledger_entries.sql. Always one row; without an entry its columns are NULL.
-- $1 accounts, $2 and $3 key, $4 most entries of everybody, $5 last block time wanted.
SELECT head.height AS head_height, head.block_time AS head_time, entry.*
FROM (VALUES (1)) AS always
LEFT JOIN last_block AS head ON true
LEFT JOIN LATERAL (
    SELECT 1::int8 AS walk, block_time, ledger_entry_time, account_from_id, account_to_id, quantity::text AS quantity,
        type, account_from_balance::text AS from_balance, account_to_balance::text AS to_balance
    FROM ledger
    WHERE block_time >= $2::timestamptz AND (block_time, ledger_entry_time) > ($2::timestamptz, $3::timestamptz)
        AND block_time < coalesce((
            SELECT block_time FROM ledger WHERE block_time >= $2::timestamptz
            ORDER BY block_time OFFSET $4::int8 LIMIT 1
        ), 'infinity')
        AND block_time <= $5::timestamptz
        AND (account_from_id IN (SELECT unnest($1::text[])) OR account_to_id IN (SELECT unnest($1::text[])))
    ORDER BY block_time
) AS entry ON true
