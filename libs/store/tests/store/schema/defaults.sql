-- The defaults of columns.
SELECT concat(adrelid::regclass, '.', attname, ' ', pg_get_expr(adbin, adrelid))
FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum ORDER BY 1
