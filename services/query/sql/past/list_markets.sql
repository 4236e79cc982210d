SELECT kept.id, instrument_text(version.tradable_instrument, '$.instrument.code') AS code,
    instrument_text(version.tradable_instrument, '$.instrument.name') AS name,
    instrument_text(version.tradable_instrument, '$.instrument.*.quoteName') AS quote_name,
    instrument_text(version.tradable_instrument, '$.instrument.*.settlementAsset') AS settlement_asset,
    coalesce(version.decimal_places, 0) AS decimal_places,
    coalesce(version.position_decimal_places, 0) AS position_decimal_places, version.trading_mode, version.state,
    time_ns(version.market_timestamps ->> 'open') AS opened_at_ns,
    newest.mark_price, newest.best_bid_price, newest.best_offer_price, newest.open_interest
FROM markets_current AS kept CROSS JOIN LATERAL (
    SELECT tradable_instrument, decimal_places, position_decimal_places, trading_mode, state, market_timestamps
    FROM markets AS version WHERE version.id = kept.id AND version.block_time <= {time}
    ORDER BY version.block_time DESC LIMIT 1
) AS version LEFT JOIN LATERAL (
    SELECT mark_price, best_bid_price, best_offer_price, open_interest FROM market_data
    WHERE market_data.market = kept.id AND market_data.block_time <= {time}
    ORDER BY market_data.block_time DESC NULLS LAST, market_data.seq_num DESC LIMIT 1
) AS newest ON true
