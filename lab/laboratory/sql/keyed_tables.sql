-- The tables with a key.
SELECT conrelid::regclass::text FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
WHERE contype = 'p' AND relkind = 'r' AND relnamespace = 'public'::regnamespace
    AND relname <> 'refinery_schema_history'
