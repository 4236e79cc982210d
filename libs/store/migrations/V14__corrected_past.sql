-- V13 created these functions with bodies that were read with the search path of each call, which a restore, ANALYZE by
-- autovacuum and PostgreSQL 17 leave empty. Databases that have that V13 get the bodies of today's.
CREATE OR REPLACE FUNCTION micros(given timestamptz) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN date_part('epoch', given - timestamptz '1970-01-01 00:00:00+00') * 1000000;

CREATE OR REPLACE FUNCTION lifetime(owner text, since timestamptz, until timestamptz) RETURNS box
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN box(
        point(hashtext(owner), micros(since)),
        point(hashtext(owner), CASE WHEN until IS NULL THEN 9e15 ELSE micros(until) END)
    );

-- Reads as of a block test the status of each version on their way along the plain indexes.
DROP INDEX deposits_marked_created_timestamp_id_idx;
DROP INDEX withdrawals_marked_created_timestamp_id_idx;
