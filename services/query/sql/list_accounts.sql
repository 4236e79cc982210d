-- Accounts with their balances, and the head they were read at. At least one row, without an account when none
-- matches.
-- $1 party, $2 market: filters, NULL = not given. $3 most rows.
-- Leans on unique (party_id, asset_id, market_id, type), (market_id), current_balances (account_id).
SELECT head.height AS head_height, head.block_time AS head_time, account.*
FROM (VALUES (1)) AS always
LEFT JOIN last_block AS head ON true
LEFT JOIN (
    SELECT coalesce(party_id, '') AS party, coalesce(market_id, '') AS market, asset_id AS asset,
        coalesce(type, 0) AS type, coalesce(balance, 0)::text AS balance
    FROM accounts
    LEFT JOIN current_balances ON current_balances.account_id = accounts.id
    WHERE ($1::text IS NULL OR party_id = $1) AND ($2::text IS NULL OR market_id = $2)
    ORDER BY party_id IS DISTINCT FROM 'network', party, market, asset, type
    LIMIT $3
) AS account ON true
