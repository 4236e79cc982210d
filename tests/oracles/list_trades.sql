-- Every trade (contract 4.20).
SELECT 'trade' AS list, jsonb_build_array(pg_temp.ns(synthetic_time)) AS key, jsonb_build_object(
    'id', id, 'marketId', market_id, 'price', price::text, 'size', size::text, 'buyer', buyer, 'seller', seller,
    'aggressor', pg_temp.named('SIDE_', aggressor, '{UNSPECIFIED, BUY, SELL}'),
    'buyOrder', buy_order, 'sellOrder', sell_order,
    'type', pg_temp.named('TYPE_', type, '{UNSPECIFIED, DEFAULT, NETWORK_CLOSE_OUT_GOOD, NETWORK_CLOSE_OUT_BAD}'),
    'timestamp', pg_temp.ns(synthetic_time)::text
) AS node
FROM trades
WHERE market_id = coalesce($1 ->> 'marketId', market_id) AND coalesce($1 ->> 'partyId', buyer) IN (buyer, seller)
    AND pg_temp.within(synthetic_time, $1 ->> 'dateRange.startTimestamp', $1 ->> 'dateRange.endTimestamp')
ORDER BY synthetic_time
