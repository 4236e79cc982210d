# Follows a recipe: what it has made, in the form of expected.sql. `columns` reads one table's rows, and is the tool's.
import datetime
import decimal
import json


def text(value):
    # NaN, NaT and the like are not equal to themselves; pandas' NA is neither.
    if value is None or str(value) == "<NA>" or value != value:
        return None
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, datetime.datetime):
        since = value - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        return str(since // datetime.timedelta(microseconds=1))
    if isinstance(value, decimal.Decimal):
        plain = format(value, "f")
        return plain.rstrip("0").rstrip(".") if "." in plain else plain
    assert isinstance(value, (int, str)), f"{value!r} is a {type(value)}"
    return str(value)


FORM = {
    "trades": ["id", "synthetic_time", "market", "price", "price_scaled", "size_scaled", "aggressor", "type", "buyer", "seller",
               "buyer_maker_fee", "seller_auction_batch"],
    "orders": ["id", "created_at", "updated_at", "market", "price", "price_scaled", "remaining_scaled", "side", "type",
               "time_in_force", "status", "reference", "lp_id", "pegged_offset", "post_only"],
    "ledger": ["block_time", "quantity", "effect", "effect_scaled", "symbol", "transfer_type", "account_from_market_id",
               "account_to_balance"],
}
made = {table: [[text(value) for value in row] for row in columns(table, names)] for table, names in FORM.items()}
print("made", json.dumps(made))
