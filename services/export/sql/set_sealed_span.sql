-- Notes the span of the newest segment: up to its end no row is added, so that reads as of a block there are final. Not while the
-- database has not reached this end: its blocks may be those of another history, which is found out when it has begun a
-- later segment.
-- $1 first height, $2 last height.
INSERT INTO last_snapshot_span AS kept (from_height, to_height) SELECT $1::int8, $2::int8 FROM last_block WHERE height >= $2::int8
ON CONFLICT (onerow_check) DO UPDATE SET from_height = EXCLUDED.from_height, to_height = EXCLUDED.to_height
    WHERE kept.to_height IS DISTINCT FROM EXCLUDED.to_height
