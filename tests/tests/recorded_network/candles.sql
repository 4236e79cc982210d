-- The recorded candles of each id in the form of the API.
SELECT candle_id, jsonb_agg(jsonb_build_object(
    'open', open, 'close', close, 'high', high, 'low', low, 'volume', volume,
    'start', extract(epoch FROM period_start)::numeric(20, 9)::text,
    'lastUpdate', extract(epoch FROM last_update_in_period)::numeric(20, 9)::text
) ORDER BY period_start)
FROM candles GROUP BY candle_id
