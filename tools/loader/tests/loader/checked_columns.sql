-- The columns of numbers and times.
SELECT attrelid::regclass::text, attname::text, base, attndims > 0 FROM pg_attribute
JOIN pg_type ON pg_type.oid = atttypid
CROSS JOIN LATERAL format_type(CASE typtype WHEN 'd' THEN typbasetype ELSE atttypid END, NULL) AS base
WHERE attrelid IN (SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace)
    AND attnum > 0 AND NOT attisdropped
    AND base IN ('numeric', 'double precision', 'real', 'timestamp with time zone')
