-- Primary keys and indexes of every table.
SELECT indrelid::regclass::text,
    concat(CASE WHEN indisprimary THEN 'primary key' WHEN indisunique THEN 'unique'
        WHEN amname = 'gin' THEN 'gin' ELSE 'index' END,
        ' (', (SELECT string_agg(coalesce(attname, 'expression'), ', ' ORDER BY place)
               FROM unnest(indkey::int2[]) WITH ORDINALITY AS part (number, place)
               LEFT JOIN pg_attribute ON attrelid = indrelid AND attnum = number
               WHERE place <= indnkeyatts), ')')
FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid JOIN pg_am ON pg_am.oid = relam
WHERE relnamespace = 'public'::regnamespace AND indpred IS NULL
