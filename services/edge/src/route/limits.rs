//! `/limits`: the limits in force (contract section 7), from the configuration, and those of a key.

use std::{num::NonZeroU32, time::Duration};

use http::HeaderMap;
use mesh_bus::PullLimits;
use proto_msgs::{
    COMMIT_MS, MAX_LIST_LENGTH, NODE_CALL_MS,
    v2::{LimitsReply, RateLimits, RequestLimits, RowLimits, TimeLimits},
};
use warp::reply::Response;

use crate::{
    admission::head::HttpError,
    config::{Config, HTTP2_STREAMS, MAX_HEADERS, RateLimit, STALL_TIMEOUT},
    keys::ClientKey,
    route::page::Page,
};

/// The name in metrics and logs.
pub(crate) const LIMITS: &str = "limits";

/// The answer to a request with a key: what the key's line names replaces the limits of an address.
///
/// # Errors
/// Those of [`Page::answer`].
pub(crate) fn of_key(
    config: &Config,
    key: &ClientKey,
    query: &str,
    request: &HeaderMap,
) -> Result<Response, HttpError> {
    let (mut limits, entry) = (in_force(config), key.entry());
    if let Some(rate) = &mut limits.rate {
        if let Some(per_s) = entry.rate_per_s {
            let burst = |per_s| RateLimit::new(per_s, entry.burst).burst.get();
            (rate.requests_per_s, rate.burst) = (per_s, NonZeroU32::new(per_s).map_or(0, burst));
        }
        rate.exports_per_address = entry.exports.unwrap_or(rate.exports_per_address);
        rate.watches_per_address = entry.watches.unwrap_or(rate.watches_per_address);
    }
    Page::json(LIMITS, move || limits).answer(query, request)
}

/// The limits of this process, and those of the services by the same variables.
pub(super) fn in_force(config: &Config) -> LimitsReply {
    let limits = &config.limits;
    LimitsReply {
        request: Some(RequestLimits {
            body_bytes: count(limits.body_bytes),
            url_bytes: count(limits.url_bytes),
            head_bytes: count(limits.head_bytes),
            headers: MAX_HEADERS,
            list_elements: count(MAX_LIST_LENGTH),
        }),
        rows: Some(RowLimits {
            page_default: count(config.rows.page_default),
            page_greatest: count(config.rows.page_max),
            accounts_greatest: count(config.rows.accounts_max),
        }),
        rate: Some(RateLimits {
            requests_per_s: config.rate.map_or(0, |rate| rate.per_s.get()),
            exports_per_address: config.exports_per_address.map_or(0, |most| count(most.get())),
            requests_in_flight: count(limits.in_flight),
            connections: count(limits.connections),
            requests_per_connection: HTTP2_STREAMS,
            watches: count(config.watches),
            watches_per_address: config.watches_per_address.map_or(0, |most| count(most.get())),
            burst: config.rate.map_or(0, |rate| rate.burst.get()),
        }),
        time: Some(TimeLimits {
            head_ms: milliseconds(limits.head_time),
            body_ms: milliseconds(limits.body_time),
            body_idle_ms: milliseconds(limits.body_idle),
            idle_ms: milliseconds(limits.idle),
            query_ms: milliseconds(limits.query_time()),
            node_ms: NODE_CALL_MS,
            commit_ms: COMMIT_MS,
            export_idle_ms: milliseconds(PullLimits::default().idle),
            stalled_ms: milliseconds(STALL_TIMEOUT),
        }),
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}
