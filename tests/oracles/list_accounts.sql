-- Every account with its newest balance, the network's accounts first (contract 4.9).
WITH shown AS (
    SELECT coalesce(party_id, '') AS party, coalesce(market_id, '') AS market, asset_id AS asset,
        coalesce(type, 0) AS type, coalesce((
            SELECT balance FROM balances WHERE account_id = accounts.id ORDER BY block_time DESC LIMIT 1
        ), 0) AS balance
    FROM accounts
)
SELECT 'account' AS list, jsonb_build_array(party, market, asset, type) AS key, jsonb_build_object(
    'party', party, 'market', market, 'balance', balance::text, 'asset', asset,
    'type', 'ACCOUNT_TYPE_' || pg_temp.account_type(type)
) AS node
FROM shown
WHERE party = coalesce(CASE $1 ->> 'party' WHEN repeat('0', 64) THEN 'network' ELSE $1 ->> 'party' END, party)
    AND market = coalesce($1 ->> 'market', market)
ORDER BY party <> 'network', party, market, asset, type
