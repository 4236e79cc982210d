-- Views stand for the tables of the same names.
SET oracle.height = 0;
DO $$ DECLARE history text; BEGIN
    FOR history IN SELECT relname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        WHERE attname = 'block_time' AND relkind = 'r' AND relnamespace = 'public'::regnamespace
    LOOP
        EXECUTE format('CREATE TEMPORARY VIEW %1$I AS SELECT * FROM public.%1$I WHERE block_time <= (
            SELECT max(block_time) FROM public.blocks WHERE height <= current_setting(''oracle.height'')::int8
        )', history);
    END LOOP;
END $$
