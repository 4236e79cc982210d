-- Candles of periods that were over, and the one that ran: hours and minutes that were over, and the trades since. A trade is
-- at or after the time of its block, and less than a second after it. In the order of the walk, PostgreSQL merges the
-- two and stops at the end of the page; otherwise it reads and sorts every candle of the market.
(
    SELECT interval, market_id, period_start, last_update_in_period, high, low, open, close, volume
    FROM trades_candle
    WHERE period_start < coalesce(
        date_bin(replace(nullif({interval}, 'block'), '_', ' ')::interval, {time}, '2000-01-01 00:00:00+00'),
        {time} + interval '1 microsecond'
    ){order}
)
UNION ALL
SELECT {interval} COLLATE "C", {market_id} COLLATE "C", period_start, max(last_at), max(high)::bigamount,
    min(low)::bigamount, (min(opening))[2]::bigamount, (max(closing))[2]::bigamount, sum(volume)
FROM (
    SELECT date_bin(replace(nullif({interval}, 'block'), '_', ' ')::interval, first_at, '2000-01-01 00:00:00+00')
            AS period_start,
        last_at, high, low, ARRAY[extract(epoch FROM first_at), open] AS opening,
        ARRAY[extract(epoch FROM last_at), close] AS closing, volume
    FROM (
        SELECT first_trade_at AS first_at, last_update_in_period AS last_at, high, low, open, close, volume
        FROM trades_candle AS hour
        WHERE hour.interval = '1_hour' AND hour.market_id = {market_id}
            AND hour.period_start >= date_bin(
                replace(nullif({interval}, 'block'), '_', ' ')::interval, {time}, '2000-01-01 00:00:00+00')
            AND hour.period_start < date_bin('1 hour', {time}, '2000-01-01 00:00:00+00')
        UNION ALL
        SELECT first_trade_at, last_update_in_period, high, low, open, close, volume
        FROM trades_candle AS minute
        WHERE minute.interval = '1_minute' AND minute.market_id = {market_id}
            AND minute.period_start >= greatest(
                date_bin(replace(nullif({interval}, 'block'), '_', ' ')::interval, {time}, '2000-01-01 00:00:00+00'),
                date_bin('1 hour', {time}, '2000-01-01 00:00:00+00')
            )
            AND minute.period_start < date_bin('1 minute', {time}, '2000-01-01 00:00:00+00')
        UNION ALL
        SELECT synthetic_time, synthetic_time, price, price, price, price, size
        FROM trades
        WHERE market_id = {market_id} AND block_time <= {time}
            AND synthetic_time >= date_bin('1 minute', {time}, '2000-01-01 00:00:00+00')
            AND synthetic_time < {time} + interval '1 second'
    ) AS piece
    WHERE {interval} <> 'block'
) AS part
GROUP BY period_start
