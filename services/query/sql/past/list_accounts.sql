SELECT
    CASE accounts.party_id WHEN 'network' THEN '' ELSE '+' || coalesce(accounts.party_id, '') END AS party_order,
    coalesce(accounts.market_id, '') AS market, accounts.asset_id AS asset,
    coalesce(accounts.type, 0)::int8 AS type_number, coalesce(accounts.party_id, '') AS party,
    coalesce(version.balance, 0) AS balance
FROM accounts LEFT JOIN LATERAL (
    SELECT balance FROM balances AS version
    WHERE version.account_id = accounts.id AND version.block_time <= {time}
    ORDER BY version.block_time DESC LIMIT 1
) AS version ON true
WHERE accounts.block_time <= {time}
