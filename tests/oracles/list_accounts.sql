-- Every account with its newest balance, the network's accounts first (contract 4.9).
WITH shown AS (
    SELECT accounts, coalesce(party_id, '') AS party, coalesce(market_id, '') AS market, asset_id AS asset,
        coalesce(type, 0) AS type
    FROM accounts
)
SELECT 'account' AS list, jsonb_build_array(party, market, asset, type) AS key, pg_temp.node(accounts) AS node
FROM shown
WHERE party = coalesce(pg_temp.party($1 ->> 'party'), party) AND market = coalesce($1 ->> 'market', market)
ORDER BY party <> 'network', party, market, asset, type, pg_temp.node(accounts) ->> 'balance' COLLATE "C"
