-- Ledger entries of several walks, each along one account's index behind its own key, in the walk's order, and the
-- head they were read at. Always one row; without an entry its columns are NULL.
-- $1 accounts, $2 whether the account sends (else it receives), $3 and $4 keys, $5 most rows: one of each per walk;
-- $6 last block time wanted. `walk` counts from 1.
-- The account is part of what is compared and sorted by, because no other index can serve that: a walk that is nearly at
-- its end must not look for the rest of its rows among everybody's.
SELECT head.height AS head_height, head.block_time AS head_time, entry.*
FROM (VALUES (1)) AS always
LEFT JOIN last_block AS head ON true
LEFT JOIN LATERAL (
    SELECT walk.number AS walk, ledger.block_time, ledger.ledger_entry_time, ledger.account_from_id,
        ledger.account_to_id, ledger.quantity::text AS quantity, ledger.type,
        ledger.account_from_balance::text AS from_balance, ledger.account_to_balance::text AS to_balance
    FROM unnest($1::text[], $2::bool[], $3::timestamptz[], $4::timestamptz[], $5::int8[]) WITH ORDINALITY
        AS walk (account, sends, block_time, entry_time, rows, number)
    CROSS JOIN LATERAL (
        (
            SELECT * FROM ledger
            WHERE walk.sends
                AND (account_from_id, block_time, ledger_entry_time) > (walk.account, walk.block_time, walk.entry_time)
                AND (account_from_id, block_time) <= (walk.account, $6::timestamptz)
            ORDER BY account_from_id, block_time, ledger_entry_time LIMIT walk.rows
        )
        UNION ALL
        (
            SELECT * FROM ledger
            WHERE NOT walk.sends
                AND (account_to_id, block_time, ledger_entry_time) > (walk.account, walk.block_time, walk.entry_time)
                AND (account_to_id, block_time) <= (walk.account, $6::timestamptz)
            ORDER BY account_to_id, block_time, ledger_entry_time LIMIT walk.rows
        )
    ) AS ledger
) AS entry ON true
