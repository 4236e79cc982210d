-- All rows as of the end of the span, which is set by next_span.sql.
COPY (
    SELECT * FROM network_parameters
    WHERE block_time <= current_setting('mesh.time_to')::timestamptz
    ORDER BY key, block_time
) TO STDOUT (FORMAT csv, HEADER)
