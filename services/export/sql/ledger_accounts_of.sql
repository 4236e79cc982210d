-- The accounts of a party and an asset, and the head they were read at. Always one row; without an account its columns
-- are NULL.
-- $1 party, $2 asset.
SELECT head.height AS head_height, head.block_time AS head_time,
    account.id, account.party_id, account.asset_id, account.market_id, account.type
FROM (VALUES (1)) AS always
LEFT JOIN last_block AS head ON true
LEFT JOIN accounts AS account ON account.party_id = $1::text AND account.asset_id = $2::text
