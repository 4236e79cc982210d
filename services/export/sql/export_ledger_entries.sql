-- The ledger entries of a party and an asset behind a key, in order of (block_time, ledger_entry_time), and the head
-- they were read at. Always one row; without an entry its columns are NULL.
-- $1 party, $2 asset, $3 and $4 the key, $5 last block time wanted, $6 most rows.
-- Every account is walked along its two indexes for a share of the rows. A walk that found its whole share may go on
-- behind it, so only rows up to the nearest end of such walks (the horizon) are given. The next read begins behind
-- `reached`; when that is NULL there is nothing more.
WITH mine AS MATERIALIZED (
    SELECT id FROM accounts WHERE party_id = $1::text AND asset_id = $2::text
), share AS MATERIALIZED (
    SELECT greatest($6::int8 / greatest(2 * count(*), 1), 16) AS rows FROM mine
), found AS MATERIALIZED (
    SELECT entry.* FROM mine CROSS JOIN share CROSS JOIN LATERAL (
        SELECT ledger.*, row_number() OVER (ORDER BY block_time, ledger_entry_time) AS place FROM ledger
        WHERE account_from_id = mine.id AND block_time <= $5::timestamptz
            AND (block_time, ledger_entry_time) > ($3::timestamptz, $4::timestamptz)
        ORDER BY block_time, ledger_entry_time LIMIT share.rows
    ) AS entry
    UNION ALL
    SELECT entry.* FROM mine CROSS JOIN share CROSS JOIN LATERAL (
        SELECT ledger.*, row_number() OVER (ORDER BY block_time, ledger_entry_time) AS place FROM ledger
        WHERE account_to_id = mine.id AND block_time <= $5::timestamptz
            AND (block_time, ledger_entry_time) > ($3::timestamptz, $4::timestamptz)
        ORDER BY block_time, ledger_entry_time LIMIT share.rows
    ) AS entry
), horizon AS (
    SELECT found.block_time, found.ledger_entry_time FROM found CROSS JOIN share WHERE found.place = share.rows
    ORDER BY found.block_time, found.ledger_entry_time LIMIT 1
), given AS MATERIALIZED (
    SELECT DISTINCT ON (found.block_time, found.ledger_entry_time) found.*
    FROM found LEFT JOIN horizon ON true
    WHERE horizon.block_time IS NULL
        OR (found.block_time, found.ledger_entry_time) <= (horizon.block_time, horizon.ledger_entry_time)
    ORDER BY found.block_time, found.ledger_entry_time
    LIMIT $6::int8
), reached AS (
    (
        SELECT block_time, ledger_entry_time FROM given WHERE (SELECT count(*) FROM given) = $6::int8
        ORDER BY block_time DESC, ledger_entry_time DESC LIMIT 1
    )
    UNION ALL
    SELECT block_time, ledger_entry_time FROM horizon
    ORDER BY block_time, ledger_entry_time LIMIT 1
)
SELECT head.height AS head_height, head.block_time AS head_time,
    reached.block_time AS reached_block_time, reached.ledger_entry_time AS reached_entry_time,
    entry.*
FROM (VALUES (1)) AS always
LEFT JOIN last_block AS head ON true
LEFT JOIN reached ON true
LEFT JOIN LATERAL (
    SELECT given.block_time, given.ledger_entry_time, given.quantity::text AS quantity,
        CASE
            WHEN sender.party_id = $1::text AND receiver.party_id = $1::text THEN '0'
            WHEN sender.party_id = $1::text THEN (-given.quantity)::text
            ELSE given.quantity::text
        END AS effect,
        given.type AS transfer_type, sender.asset_id,
        sender.market_id AS from_market, sender.party_id AS from_party, sender.type AS from_type,
        given.account_from_balance::text AS from_balance,
        receiver.market_id AS to_market, receiver.party_id AS to_party, receiver.type AS to_type,
        given.account_to_balance::text AS to_balance
    FROM given
    CROSS JOIN LATERAL (SELECT * FROM accounts WHERE id = given.account_from_id LIMIT 1) AS sender
    CROSS JOIN LATERAL (SELECT * FROM accounts WHERE id = given.account_to_id LIMIT 1) AS receiver
    WHERE sender.asset_id = $2::text
) AS entry ON true
ORDER BY entry.block_time, entry.ledger_entry_time
