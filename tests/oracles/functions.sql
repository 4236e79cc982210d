-- What the oracles share. The functions belong to the session of the runner.

-- Nanoseconds since the Unix epoch.
CREATE OR REPLACE FUNCTION pg_temp.ns(stored timestamptz) RETURNS int8 LANGUAGE sql IMMUTABLE AS
    $$ SELECT (extract(epoch FROM stored) * 1000000000)::int8 $$;

-- A bound of time in a request: nanoseconds or RFC 3339; NULL when it is absent or 0.
CREATE OR REPLACE FUNCTION pg_temp.bound(given text) RETURNS numeric LANGUAGE sql AS
    $$ SELECT CASE WHEN given ~ '^[0-9]+$' THEN nullif(given::numeric, 0) ELSE pg_temp.ns(given::timestamptz) END $$;

-- Whether a time is at or after the first bound and before the second.
CREATE OR REPLACE FUNCTION pg_temp.within(stored timestamptz, lower text, upper text) RETURNS bool LANGUAGE sql AS
    $$ SELECT coalesce(pg_temp.ns(stored) >= pg_temp.bound(lower), true)
        AND coalesce(pg_temp.ns(stored) < pg_temp.bound(upper), true) $$;

-- The name of a stored number; the first name stands for all numbers without one.
CREATE OR REPLACE FUNCTION pg_temp.named(prefix text, number int, names text[]) RETURNS text LANGUAGE sql IMMUTABLE AS
    $$ SELECT prefix || coalesce(names[number + 1], names[1]) $$;

-- The same for JSON, which has a name or a number.
CREATE OR REPLACE FUNCTION pg_temp.named(prefix text, stored jsonb, names text[]) RETURNS text LANGUAGE sql IMMUTABLE AS
    $$ SELECT CASE jsonb_typeof(stored) WHEN 'string' THEN stored #>> '{}'
        ELSE pg_temp.named(prefix, CASE jsonb_typeof(stored) WHEN 'number' THEN stored::int END, names) END $$;

-- The name of an account's type.
CREATE OR REPLACE FUNCTION pg_temp.account_type(number int) RETURNS text LANGUAGE sql IMMUTABLE AS
    $$ SELECT pg_temp.named('', number, '{UNSPECIFIED, INSURANCE, SETTLEMENT, MARGIN, GENERAL, FEES_INFRASTRUCTURE,
        FEES_LIQUIDITY, FEES_MAKER, UNSPECIFIED, BOND, EXTERNAL, GLOBAL_INSURANCE, GLOBAL_REWARD, PENDING_TRANSFERS,
        REWARD_MAKER_PAID_FEES, REWARD_MAKER_RECEIVED_FEES, REWARD_LP_RECEIVED_FEES, REWARD_MARKET_PROPOSERS}') $$;

-- The conditions of a filter or of an internal time source; a list that is NULL is empty.
CREATE OR REPLACE FUNCTION pg_temp.conditions(stored jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS
    $$ SELECT coalesce(jsonb_agg(jsonb_build_object(
            'operator', pg_temp.named('OPERATOR_', value -> 'operator', '{UNSPECIFIED, EQUALS, GREATER_THAN,
                GREATER_THAN_OR_EQUAL, LESS_THAN, LESS_THAN_OR_EQUAL}'),
            'value', coalesce(value ->> 'value', '')
        ) ORDER BY ordinality), '[]')
        FROM jsonb_array_elements(nullif(stored, 'null')) WITH ORDINALITY $$;
