-- Accounts with their balances, in any order, and the head they were read at. At least one row, without an account
-- when none matches.
-- $1 most rows. The names in braces are texts of list_accounts.rs.
-- Uses unique (party_id, asset_id, market_id, type), (market_id), current_balances (account_id).
SELECT head.height AS head_height, head.block_time AS head_time, account.*
FROM (VALUES (1)) AS always
LEFT JOIN last_block AS head ON true
LEFT JOIN (
    SELECT id, coalesce(party_id, '') AS party, coalesce(market_id, '') AS market, asset_id AS asset,
        coalesce(type, 0) AS type, coalesce(balance, 0)::text AS balance
    FROM accounts
    LEFT JOIN {balances}
    {filters}
    LIMIT $1
) AS account ON true
