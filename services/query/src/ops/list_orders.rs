//! ListOrders: the newest version of each order, by market, party and status.

use mesh_problem::Problem;
use mesh_store::{Filter, KeyKind, List, PastSource, ReadError, RowReader, TimeRange, Value};
use proto_msgs::{
    numbers::list_orders::{DATE_RANGE, ORDERS as FAILED},
    v2::{
        DateRange, ListOrdersRequest, Order, PeggedOrder, Side,
        order::{Status, TimeInForce, Type},
        pegged_order::Reference,
    },
};

use crate::paging::PagedList;

/// Orders by the time of their first version. There are indexes for all orders and for the live ones.
pub static ORDERS: List = List {
    name: "order",
    table: "orders_current",
    key: &[KeyKind::Time.column("first_time"), KeyKind::Text.column("id")],
    columns: COLUMNS,
    filters: &[
        Filter::Equal("market_id"),
        Filter::Equal("party_id"),
        Filter::AnyOf("status"),
        Filter::Flag("is_live"),
        Filter::AtLeast,
        Filter::AtMost,
    ],
    indexed: &["market_id", "party_id", "status", "is_live"],
    past: &[
        PastSource { by: &["is_live", "party_id"], of_version: STATUS, sql: LIVE_OF_PARTY },
        PastSource { by: &["is_live", "market_id"], of_version: STATUS, sql: LIVE_IN_MARKET },
        PastSource { by: &["is_live"], of_version: STATUS, sql: LIVE },
        PastSource { by: &[], of_version: STATUS, sql: AS_OF_BLOCK },
    ],
    past_bound: Some(|past| Value::Time(past.time)),
    ..List::PLAIN
};

/// What changes from version to version.
const STATUS: &[&str] = &["status"];

/// The newest version of an order up to a time, one step down the index of the history.
macro_rules! version_then {
    ($condition:literal) => {
        concat!(
            "(SELECT side, price, size, remaining, time_in_force, type, status, reference, reason, version, batch_id,
                pegged_offset, pegged_reference, lp_id, post_only, reduce_only, created_at, updated_at, expires_at
            FROM orders AS version
            WHERE ",
            $condition,
            "version.id = kept.id AND version.block_time <= {time}
            ORDER BY version.block_time DESC, version.seq_num DESC LIMIT 1)"
        )
    };
}

/// All orders with their versions as of a block: the newest one where it is of then.
const AS_OF_BLOCK: &str = concat!(
    include_str!("../../sql/past/list_orders.sql"),
    "CROSS JOIN LATERAL (",
    include_str!("../../sql/past/newest_order_version.sql"),
    "UNION ALL ",
    version_then!("kept.block_time > {time} AND "),
    ") AS version"
);

/// The orders of an owner of one class of lifetimes that may have lived at a time: of orders that have ended, those that
/// ended later, and began less than the longest lifetime of the class before, where it has one.
macro_rules! of_class {
    ($owner:literal, $class:literal, within $seconds:literal) => {
        of_class!(
            $owner,
            $class,
            concat!(" AND block_time > {time} AND first_time > {time} - interval '", $seconds, " s'")
        )
    };
    ($owner:literal, $class:literal, $lived:expr) => {
        concat!(
            "(SELECT first_time, id, market_id, party_id FROM orders_current WHERE ",
            $owner,
            " AND (is_live OR block_time > first_time)",
            " AND lifetime_class(first_time, CASE WHEN NOT is_live THEN block_time END) = ",
            $class,
            " AND first_time <= {time}",
            $lived,
            "{order})"
        )
    };
}

/// The orders of an owner that may have lived at a time, of all classes (`V15__lifetimes.sql`).
macro_rules! all_classes {
    ($owner:literal) => {
        concat!(
            of_class!($owner, "0", within "4"),
            " UNION ALL ",
            of_class!($owner, "1", within "64"),
            " UNION ALL ",
            of_class!($owner, "2", within "1024"),
            " UNION ALL ",
            of_class!($owner, "3", within "16384"),
            " UNION ALL ",
            of_class!($owner, "4", within "262144"),
            " UNION ALL ",
            of_class!($owner, "5", within "4194304"),
            " UNION ALL ",
            of_class!($owner, "6", within "67108864"),
            " UNION ALL ",
            of_class!($owner, "7", " AND block_time > {time}"),
            " UNION ALL ",
            of_class!($owner, "8", ""),
        )
    };
}

/// The orders that were live at a time. In the order of the walk the classes are merged, and versions are looked up for the
/// page alone. The walks have few columns: what a small page costs is above all to set up nine of them.
macro_rules! live {
    ($lived:expr) => {
        concat!(
            include_str!("../../sql/past/list_live_orders.sql"),
            "SELECT * FROM (",
            $lived,
            ") AS lived{order}) AS kept ",
            "CROSS JOIN LATERAL ",
            version_then!(""),
            " AS version"
        )
    };
}
const LIVE: &str = live!(concat!(
    include_str!("../../sql/past/list_all_live_orders.sql"),
    all_classes!("market_id = market.market_id"),
    ") AS lived"
));
const LIVE_OF_PARTY: &str = live!(all_classes!("party_id = {party_id}"));
const LIVE_IN_MARKET: &str = live!(all_classes!("market_id = {market_id}"));

/// What [`order`] reads, besides `id`.
pub(super) const COLUMNS: &[&str] = &[
    "market_id",
    "party_id",
    "side::int4 AS side",
    "price::text AS price",
    "size",
    "remaining",
    "time_in_force::int4 AS time_in_force",
    "type::int4 AS type",
    "status::int4 AS status",
    "coalesce(reference, '') AS reference",
    "coalesce(reason, 0)::int4 AS reason",
    "version",
    "batch_id",
    "coalesce(pegged_offset, 0)::text AS pegged_offset",
    "coalesce(pegged_reference, 0)::int4 AS pegged_reference",
    "coalesce(lp_id, '') AS lp_id",
    "post_only",
    "reduce_only",
    "created_at",
    "updated_at",
    "expires_at",
];

impl PagedList for ListOrdersRequest {
    const FAILED: u32 = FAILED;
    const LIST: &'static List = &ORDERS;

    fn filters(self) -> Result<Vec<Option<Value>>, Problem> {
        let statuses = self.status().filter(|status| *status != Status::Unspecified);
        // The numbers of the contract's enum are small.
        let statuses = statuses.filter_map(|status| i16::try_from(i32::from(status)).ok()).collect();
        let is_live = self.live_only().then_some(Value::Small(1));
        let DateRange { start_timestamp, end_timestamp } = self.date_range.unwrap_or_default();
        let range = TimeRange::read(DateRange::PARAMETERS, [start_timestamp, end_timestamp], DATE_RANGE)?;
        Ok(vec![
            self.market_id.map(Value::Text),
            self.party_id.map(Value::Text),
            Some(Value::Smalls(statuses)),
            is_live,
            range.first().map(Value::Time),
            range.last().map(Value::Time),
        ])
    }

    fn node(row: &RowReader<'_>) -> Result<Order, ReadError> {
        order(row)
    }
}

/// Reads an order from a row with its columns.
pub(super) fn order(row: &RowReader<'_>) -> Result<Order, ReadError> {
    let reason: i32 = row.get("reason")?;
    let time = |column| Ok::<_, ReadError>(row.optional_ns(column)?.unwrap_or_default());
    let pegged_order = match row.get::<i32>("pegged_reference")? {
        0 => None,
        _ => Some(PeggedOrder {
            reference: row.numbered::<Reference>("pegged_reference")?.into(),
            offset: row.whole("pegged_offset")?.unwrap_or_default(),
        }),
    };
    Ok(Order {
        id: row.get("id")?,
        market_id: row.get("market_id")?,
        party_id: row.get("party_id")?,
        side: row.numbered::<Side>("side")?.into(),
        price: row.whole("price")?.unwrap_or_default(),
        size: row.unsigned("size")?,
        remaining: row.unsigned("remaining")?,
        time_in_force: row.numbered::<TimeInForce>("time_in_force")?.into(),
        r#type: row.numbered::<Type>("type")?.into(),
        status: row.numbered::<Status>("status")?.into(),
        reason: (reason != 0).then_some(reason),
        reference: row.get("reference")?,
        version: row.get("version")?,
        batch_id: row.get("batch_id")?,
        pegged_order,
        liquidity_provision_id: row.get("lp_id")?,
        post_only: row.get("post_only")?,
        reduce_only: row.get("reduce_only")?,
        created_at: row.ns("created_at")?,
        updated_at: time("updated_at")?,
        expires_at: time("expires_at")?,
    })
}
