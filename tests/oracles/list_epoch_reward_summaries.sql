-- Rewards summed over the parties of an epoch, market, asset and type (contract 4.13).
SELECT 'epochReward' AS list, jsonb_build_array(epoch_id, market_id, asset_id, reward_type) AS key, jsonb_build_object(
    'epoch', epoch_id::text, 'assetId', asset_id, 'marketId', market_id, 'rewardType', reward_type,
    'amount', coalesce(sum(amount), 0)::text
) AS node
FROM rewards
WHERE epoch_id >= coalesce(($1 ->> 'filter.fromEpoch')::numeric, epoch_id)
    AND epoch_id <= coalesce(($1 ->> 'filter.toEpoch')::numeric, epoch_id)
    AND coalesce($1 -> 'filter.assetIds' ? asset_id, true) AND coalesce($1 -> 'filter.marketIds' ? market_id, true)
GROUP BY epoch_id, market_id, asset_id, reward_type
ORDER BY epoch_id, market_id, asset_id, reward_type
