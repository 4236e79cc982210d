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

-- The name of an order's status.
CREATE OR REPLACE FUNCTION pg_temp.order_status(number int) RETURNS text LANGUAGE sql IMMUTABLE AS
    $$ SELECT pg_temp.named('STATUS_', number, '{UNSPECIFIED, ACTIVE, EXPIRED, CANCELLED, STOPPED, FILLED, REJECTED,
        PARTIALLY_FILLED, PARKED}') $$;

-- Whether a version of an order rests in the book or is parked.
CREATE OR REPLACE FUNCTION pg_temp.is_live(stored orders) RETURNS bool LANGUAGE sql IMMUTABLE AS
    $$ SELECT stored.status = 8
        OR stored.status IN (1, 7) AND stored.remaining > 0 AND stored.time_in_force IN (1, 2, 5, 6) $$;

-- What lists show: an order, a position, an account with its newest balance, a withdrawal.
CREATE OR REPLACE FUNCTION pg_temp.node(stored orders) RETURNS jsonb LANGUAGE sql IMMUTABLE AS
    $$ SELECT jsonb_strip_nulls(jsonb_build_object(
        'id', stored.id, 'marketId', stored.market_id, 'partyId', stored.party_id,
        'side', pg_temp.named('SIDE_', stored.side, '{UNSPECIFIED, BUY, SELL}'), 'price', stored.price::text,
        'size', stored.size::text, 'remaining', stored.remaining::text,
        'timeInForce', pg_temp.named('TIME_IN_FORCE_', stored.time_in_force, '{UNSPECIFIED, GTC, GTT, IOC, FOK, GFA, GFN}'),
        'type', pg_temp.named('TYPE_', stored.type, '{UNSPECIFIED, LIMIT, MARKET, NETWORK}'),
        'status', pg_temp.order_status(stored.status), 'reason', nullif(stored.reason, 0),
        'reference', coalesce(stored.reference, ''), 'version', stored.version, 'batchId', stored.batch_id,
        'peggedOrder', CASE WHEN stored.pegged_reference <> 0 THEN jsonb_build_object(
            'reference', pg_temp.named('PEGGED_REFERENCE_', stored.pegged_reference, '{UNSPECIFIED, MID, BEST_BID, BEST_ASK}'),
            'offset', coalesce(stored.pegged_offset, 0)::text) END,
        'liquidityProvisionId', coalesce(stored.lp_id, ''), 'postOnly', stored.post_only, 'reduceOnly', stored.reduce_only,
        'createdAt', pg_temp.ns(stored.created_at)::text, 'updatedAt', coalesce(pg_temp.ns(stored.updated_at), 0)::text,
        'expiresAt', coalesce(pg_temp.ns(stored.expires_at), 0)::text
    )) $$;
CREATE OR REPLACE FUNCTION pg_temp.node(stored positions) RETURNS jsonb LANGUAGE sql IMMUTABLE AS
    -- `round` rounds a half away from zero.
    $$ SELECT jsonb_build_object(
        'marketId', stored.market_id, 'partyId', stored.party_id, 'openVolume', stored.pending_open_volume::text,
        'realisedPnl', round(stored.pending_realised_pnl)::text,
        'unrealisedPnl', round(stored.pending_unrealised_pnl)::text,
        'averageEntryPrice', round(stored.pending_average_entry_market_price)::text,
        'lossSocialisationAmount', round(stored.loss_socialisation_amount)::text, 'status', stored.distressed_status,
        'updatedAt', pg_temp.ns(stored.block_time)::text, 'settled', jsonb_build_object(
            'openVolume', stored.open_volume::text, 'realisedPnl', stored.realised_pnl::text,
            'unrealisedPnl', stored.unrealised_pnl::text, 'averageEntryPrice', stored.average_entry_price::text
        )
    ) $$;
CREATE OR REPLACE FUNCTION pg_temp.node(stored accounts) RETURNS jsonb LANGUAGE sql STABLE AS
    $$ SELECT jsonb_build_object(
        'party', coalesce(stored.party_id, ''), 'market', coalesce(stored.market_id, ''), 'asset', stored.asset_id,
        'type', 'ACCOUNT_TYPE_' || pg_temp.account_type(coalesce(stored.type, 0)), 'balance', coalesce((
            SELECT balance FROM balances WHERE account_id = stored.id ORDER BY block_time DESC LIMIT 1
        ), 0)::text
    ) $$;
CREATE OR REPLACE FUNCTION pg_temp.node(stored withdrawals) RETURNS jsonb LANGUAGE sql IMMUTABLE AS
    $$ SELECT jsonb_build_object(
        'id', stored.id, 'partyId', stored.party_id, 'amount', round(coalesce(stored.amount, 0))::text,
        'asset', stored.asset, 'status', stored.status, 'ref', stored.ref, 'txHash', stored.foreign_tx_hash,
        'createdTimestamp', pg_temp.ns(stored.created_timestamp)::text,
        'withdrawnTimestamp', pg_temp.ns(stored.withdrawn_timestamp)::text,
        'ext', CASE WHEN stored.ext ? 'erc20' THEN stored.ext ELSE '{}' END
    ) $$;

-- A party as it is stored: 64 zeros are the network.
CREATE OR REPLACE FUNCTION pg_temp.party(given text) RETURNS text LANGUAGE sql IMMUTABLE AS
    $$ SELECT CASE given WHEN repeat('0', 64) THEN 'network' ELSE given END $$;
