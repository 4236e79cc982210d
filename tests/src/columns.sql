-- The columns of the tables that writers fill.
SELECT attrelid::regclass::text, quote_ident(attname),
    coalesce(nullif(typbasetype, 0), pg_type.oid)::regtype::text, typtype = 'd', NOT attnotnull,
    ARRAY(SELECT enumlabel::text FROM pg_enum WHERE enumtypid = pg_type.oid ORDER BY enumsortorder)
FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid JOIN pg_type ON pg_type.oid = atttypid
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
    AND NOT relispartition AND attnum > 0
    AND NOT attisdropped AND relname !~ '^(blocks|refinery.*|current_.*|.*_current|trades_candle.*)$'
    AND 'onerow_check' <> ALL (
        SELECT attname FROM pg_attribute AS other WHERE other.attrelid = pg_class.oid)
ORDER BY attrelid::regclass::text COLLATE "C", attnum
