-- The newest definition of every market with its newest data (contract 4.18).
WITH newest AS (
    SELECT DISTINCT ON (id) *, coalesce(state, 'STATE_UNSPECIFIED')::text AS shown_state,
        coalesce(tradable_instrument -> 'instrument' ->> 'code', '') AS code,
        coalesce(tradable_instrument -> 'instrument' ->> 'name', '') AS name,
        coalesce(jsonb_path_query_first(tradable_instrument, '$.instrument.*.quoteName') #>> '{}', '') AS quote,
        coalesce(jsonb_path_query_first(tradable_instrument, '$.instrument.*.settlementAsset') #>> '{}', '') AS asset
    FROM markets ORDER BY id, block_time DESC
), prices AS (
    SELECT DISTINCT ON (market) * FROM market_data ORDER BY market, block_time DESC, seq_num DESC
)
SELECT 'market' AS list, jsonb_build_array(id) AS key, jsonb_strip_nulls(jsonb_build_object(
    'id', id, 'code', code, 'name', name, 'quoteName', quote, 'settlementAsset', asset,
    'decimalPlaces', coalesce(decimal_places, 0), 'positionDecimalPlaces', coalesce(position_decimal_places, 0),
    'tradingMode', coalesce(trading_mode, 'TRADING_MODE_UNSPECIFIED'), 'state', shown_state,
    'openedAt', CASE WHEN market_timestamps ->> 'open' ~ '^[1-9][0-9]*$' THEN market_timestamps ->> 'open' END,
    'markPrice', coalesce(mark_price::text, ''), 'bestBidPrice', coalesce(best_bid_price::text, ''),
    'bestOfferPrice', coalesce(best_offer_price::text, ''), 'openInterest', coalesce(open_interest::text, '')
)) AS node
FROM newest LEFT JOIN prices ON market = id
WHERE shown_state = coalesce($1 ->> 'state', shown_state) AND asset = coalesce($1 ->> 'settlementAsset', asset)
ORDER BY id
