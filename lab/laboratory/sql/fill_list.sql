-- Fills the tables that a list reads with 100,000 rows, by the types of their columns. Ids that tables have in
-- common number the rows. Other texts have a thousand values of a hundred rows each, in turns consecutive and
-- distributed rows; they are constant where they are part of the primary key and not of the list's key.
CREATE FUNCTION pg_temp.fill(list text, list_key text[]) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    filled regclass;
    names text;
    row_values text;
BEGIN
    FOR filled IN
        SELECT list::regclass WHERE NOT EXISTS (SELECT FROM pg_views WHERE viewname = list)
        UNION SELECT table_name::regclass FROM information_schema.view_table_usage WHERE view_name = list
    LOOP
        SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum), string_agg(CASE
            WHEN is_id THEN $sql$lpad(to_hex(n), 64, '0')$sql$
            WHEN is_text AND is_primary AND attname <> ALL (list_key) THEN $sql$repeat('0', 64)$sql$
            WHEN is_text AND texts % 2 = 1 THEN $sql$lpad(to_hex(n / 100), 64, '0')$sql$
            WHEN is_text THEN $sql$lpad(to_hex(n % 1000), 64, '0')$sql$
            WHEN base IN ('int8'::regtype, 'int4'::regtype, 'numeric'::regtype) THEN 'n'
            WHEN base = 'timestamptz'::regtype THEN $sql$timestamptz '2023-01-01 00:00:00+00' + n * interval '1 s'$sql$
            WHEN base IN ('int2'::regtype, 'float8'::regtype) THEN '1'
            WHEN base = 'bool'::regtype THEN 'n % 2 = 0'
            WHEN base = 'text[]'::regtype THEN $sql$ARRAY[lpad(to_hex(n), 64, '0')]$sql$
            WHEN base = 'jsonb'::regtype THEN $sql$'{}'$sql$
            ELSE quote_literal((SELECT min(enumlabel) FROM pg_enum WHERE enumtypid = base))
        END, ', ' ORDER BY attnum)
        INTO names, row_values
        FROM (
            SELECT *, count(*) FILTER (WHERE is_text AND NOT is_id) OVER (ORDER BY attnum) AS texts
            FROM (
                SELECT attname, attnum, coalesce(nullif(typbasetype, 0), pg_type.oid) AS base,
                    atttypid = 'text'::regtype AS is_text,
                    atttypid = 'text'::regtype AND attname IN ('id', 'account_id', 'market') AS is_id,
                    EXISTS (
                        SELECT FROM pg_index WHERE indrelid = filled AND indisprimary AND attnum = ANY (indkey)
                    ) AS is_primary
                FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
                WHERE attrelid = filled AND attnum > 0 AND NOT attisdropped
            ) AS declared
        ) AS counted;
        EXECUTE format('ALTER TABLE %s DISABLE TRIGGER USER', filled);
        EXECUTE format(
            'INSERT INTO %s (%s) SELECT %s FROM generate_series(0, 99999) AS n ON CONFLICT DO NOTHING',
            filled, names, row_values
        );
        EXECUTE format('ALTER TABLE %s ENABLE TRIGGER USER', filled);
    END LOOP;
END
$$
