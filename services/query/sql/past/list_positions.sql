SELECT kept.party_id, kept.market_id, version.*
FROM positions_current AS kept CROSS JOIN LATERAL (
    -- The newest version, where it is of that time, and otherwise the newest one of then.
    SELECT kept.pending_open_volume, kept.pending_realised_pnl, kept.pending_unrealised_pnl,
        kept.pending_average_entry_market_price, kept.loss_socialisation_amount, kept.distressed_status, kept.open_volume,
        kept.realised_pnl, kept.unrealised_pnl, kept.average_entry_price, kept.block_time
    WHERE kept.block_time <= {time}
    UNION ALL
    (
        SELECT pending_open_volume, pending_realised_pnl, pending_unrealised_pnl, pending_average_entry_market_price,
            loss_socialisation_amount, distressed_status, open_volume, realised_pnl, unrealised_pnl, average_entry_price,
            block_time
        FROM positions AS version
        WHERE kept.block_time > {time} AND version.party_id = kept.party_id AND version.market_id = kept.market_id
            AND version.block_time <= {time}
        ORDER BY version.block_time DESC LIMIT 1
    )
) AS version
