-- All rows as of the end of the span, which is set by next_span.sql.
COPY (
    SELECT * FROM epochs
    WHERE block_time <= current_setting('mesh.time_to')::timestamptz
    ORDER BY id, block_time
) TO STDOUT (FORMAT csv, HEADER)
