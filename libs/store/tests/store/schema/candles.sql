-- The columns of every candle view, in their order.
SELECT relname::text, string_agg(concat(attname, ' ', format_type(atttypid, atttypmod)), ', ' ORDER BY attnum)
FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
WHERE relnamespace = 'public'::regnamespace AND relkind = 'v' AND attnum > 0
    AND relname LIKE 'trades_candle_%' GROUP BY 1
