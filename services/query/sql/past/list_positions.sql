SELECT kept.party_id, kept.market_id, version.*
FROM positions_current AS kept CROSS JOIN LATERAL (
    SELECT pending_open_volume, pending_realised_pnl, pending_unrealised_pnl, pending_average_entry_market_price,
        loss_socialisation_amount, distressed_status, open_volume, realised_pnl, unrealised_pnl, average_entry_price,
        block_time
    FROM positions AS version
    WHERE version.party_id = kept.party_id AND version.market_id = kept.market_id AND version.block_time <= {time}
    ORDER BY version.block_time DESC LIMIT 1
) AS version
