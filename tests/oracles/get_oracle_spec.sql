-- The newest version of one oracle spec (contract 4.4, DATA_MODEL 3.1).
SELECT jsonb_build_object('oracleSpec', jsonb_build_object('externalDataSourceSpec', jsonb_build_object(
    'spec', jsonb_build_object(
        'id', id, 'createdAt', pg_temp.ns(created_at)::text, 'updatedAt', pg_temp.ns(updated_at)::text, 'status', status,
        'data', CASE WHEN internal_conditions IS NULL THEN jsonb_build_object('external', jsonb_build_object(
            'oracle', jsonb_build_object('signers', coalesce(nullif(signers, 'null'), '[]'), 'filters', (
                SELECT coalesce(jsonb_agg(jsonb_build_object(
                    'key', jsonb_strip_nulls(jsonb_build_object(
                        'name', coalesce(value -> 'key' ->> 'name', ''),
                        'type', pg_temp.named('TYPE_', value -> 'key' -> 'type',
                            '{UNSPECIFIED, EMPTY, INTEGER, STRING, BOOLEAN, DECIMAL, TIMESTAMP}'),
                        'numberDecimalPlaces', value -> 'key' ->> 'numberDecimalPlaces'
                    )),
                    'conditions', pg_temp.conditions(value -> 'conditions')
                ) ORDER BY ordinality), '[]')
                FROM jsonb_array_elements(nullif(filters, 'null')) WITH ORDINALITY
            ))
        )) ELSE jsonb_build_object('internal', jsonb_build_object(
            'time', jsonb_build_object('conditions', pg_temp.conditions(internal_conditions))
        )) END
    )
))) AS answer
FROM oracle_specs
WHERE id = $1 ->> 'oracleSpecId'
ORDER BY block_time DESC LIMIT 1
