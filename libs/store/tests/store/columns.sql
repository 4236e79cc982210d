-- The columns of table $1 in their order: name, whether it is required, comment, type, labels and name of an enum.
SELECT attname::text, attnotnull, coalesce(col_description(attrelid, attnum), ''),
    format_type(coalesce(nullif(typbasetype, 0), atttypid),
        CASE WHEN typbasetype = 0 THEN atttypmod ELSE typtypmod END),
    coalesce((SELECT array_agg(enumlabel::text ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = atttypid), '{}'),
    typname::text
FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum
