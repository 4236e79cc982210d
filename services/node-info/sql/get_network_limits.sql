-- The newest network limits, and the head they were read at. Always one row.
-- $1 time of the block that they are as of, NULL = now. Leans on the primary key (block_time).
SELECT head.height AS head_height, head.block_time AS head_time, limits.*
FROM (VALUES (1)) AS always
LEFT JOIN last_block AS head ON true
LEFT JOIN LATERAL (
    SELECT can_propose_market, can_propose_asset, propose_market_enabled, propose_asset_enabled, genesis_loaded,
        propose_market_enabled_from, propose_asset_enabled_from
    FROM network_limits WHERE network_limits.block_time <= coalesce($1::timestamptz, 'infinity')
    ORDER BY network_limits.block_time DESC LIMIT 1
) AS limits ON true
