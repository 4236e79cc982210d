-- All columns of the tables $1.
SELECT coalesce(string_agg(concat_ws(' ', attrelid::regclass, attname,
    format_type(atttypid, atttypmod), attnotnull), ', ' ORDER BY attrelid::regclass::text, attnum), '')
FROM pg_attribute
WHERE attnum > 0 AND NOT attisdropped AND attrelid = ANY (ARRAY(
    SELECT to_regclass(name) FROM unnest($1::text[]) AS name))
