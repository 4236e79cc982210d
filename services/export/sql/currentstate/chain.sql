-- One row, which never changes.
COPY (SELECT * FROM chain ORDER BY onerow_check) TO STDOUT (FORMAT csv, HEADER)
