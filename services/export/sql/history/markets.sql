-- Rows of one span; bounds from next_span.sql. Leans on an index that begins with block_time.
COPY (
    SELECT * FROM markets
    WHERE block_time >= current_setting('mesh.time_from')::timestamptz
        AND block_time <= current_setting('mesh.time_to')::timestamptz
    ORDER BY id, block_time
) TO STDOUT (FORMAT csv, HEADER)
