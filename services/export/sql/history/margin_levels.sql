-- Rows of one span; bounds from next_span.sql. Leans on an index that begins with block_time.
COPY (
    SELECT * FROM margin_levels
    WHERE block_time >= current_setting('mesh.time_from')::timestamptz
        AND block_time <= current_setting('mesh.time_to')::timestamptz
    ORDER BY block_time, account_id
) TO STDOUT (FORMAT csv, HEADER)
