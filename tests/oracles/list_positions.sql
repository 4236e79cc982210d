-- The newest position of every party in every market (contract 4.21); `round` rounds a half away from zero.
WITH newest AS (
    SELECT DISTINCT ON (party_id, market_id) * FROM positions ORDER BY party_id, market_id, block_time DESC
)
SELECT 'position' AS list, jsonb_build_array(party_id, market_id) AS key, jsonb_build_object(
    'marketId', market_id, 'partyId', party_id, 'openVolume', pending_open_volume::text,
    'realisedPnl', round(pending_realised_pnl)::text, 'unrealisedPnl', round(pending_unrealised_pnl)::text,
    'averageEntryPrice', round(pending_average_entry_market_price)::text,
    'lossSocialisationAmount', round(loss_socialisation_amount)::text, 'status', distressed_status,
    'updatedAt', pg_temp.ns(block_time)::text, 'settled', jsonb_build_object(
        'openVolume', open_volume::text, 'realisedPnl', realised_pnl::text, 'unrealisedPnl', unrealised_pnl::text,
        'averageEntryPrice', average_entry_price::text
    )
) AS node
FROM newest
WHERE party_id = coalesce($1 ->> 'partyId', party_id) AND market_id = coalesce($1 ->> 'marketId', market_id)
ORDER BY party_id, market_id
