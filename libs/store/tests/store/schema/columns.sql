-- The columns of every table, in their order.
SELECT relname::text, array_agg(concat(attname, ' ', format_type(atttypid, atttypmod),
    CASE WHEN collname = 'C' THEN ' C' END, CASE WHEN attnotnull THEN ' not null' END) ORDER BY attnum)
FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
    LEFT JOIN pg_collation ON pg_collation.oid = attcollation
WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped
GROUP BY 1
