-- The newest limits (contract 4.7).
SELECT jsonb_build_object('limits', jsonb_build_object(
    'canProposeMarket', can_propose_market, 'canProposeAsset', can_propose_asset,
    'proposeMarketEnabled', propose_market_enabled, 'proposeAssetEnabled', propose_asset_enabled,
    'genesisLoaded', genesis_loaded, 'proposeMarketEnabledFrom', pg_temp.ns(propose_market_enabled_from)::text,
    'proposeAssetEnabledFrom', pg_temp.ns(propose_asset_enabled_from)::text
)) AS answer
FROM network_limits
ORDER BY block_time DESC LIMIT 1
