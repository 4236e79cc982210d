-- The labels of every enum type, in their order.
SELECT typname::text, array_agg(enumlabel::text ORDER BY enumsortorder)
FROM pg_enum JOIN pg_type ON pg_type.oid = enumtypid GROUP BY 1
