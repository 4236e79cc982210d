"""Decodes the blocks of dex-chain into rows of Tradewind's tables.

    python3 decoder.py                      serves mesh.decode.Block on the bus named by MESH_BUS_URL
    python3 decoder.py --stdin < blocks.jsonl   prints the rows of recorded blocks, one a line
"""

import asyncio
import base64
import gzip
import hashlib
import json
import os
import re
import signal
import ssl
import sys

# Account types of Tradewind, with their numbers. The bridge is the outside world: its account may be overdrawn.
GENERAL, EXTERNAL = ("ACCOUNT_TYPE_GENERAL", "4"), ("ACCOUNT_TYPE_EXTERNAL", "10")
# Events that change nothing in the tables. An event that is neither here nor in ROWS is an error, not a silent loss.
WITHOUT_ROWS = {"EventBlockStarted"}


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


# The API takes party, market and trade ids of 64 hex digits; names of this chain become such an id by their hash.
def party(owner):
    return "network" if owner == "bridge" else sha256("party/" + owner)


def market(symbol):
    return sha256("market/" + symbol)


def account(owner, denom):
    return sha256(denom + party(owner) + (EXTERNAL if owner == "bridge" else GENERAL)[0])


def asset_listed(e, _):
    yield "assets", {"id": e["denom"], "name": e["denom"], "symbol": e["denom"], "decimals": str(e["decimals"]),
                     "quantum": "1", "lifetime_limit": "0", "withdraw_threshold": "0", "status": "STATUS_ENABLED"}


def market_created(e, _):
    spot = {"quoteName": e["quote"], "settlementAsset": e["quote"]}
    yield "markets", {"id": market(e["symbol"]), "decimal_places": str(e["quote_decimals"]),
                      "position_decimal_places": str(e["base_decimals"]), "trading_mode": "TRADING_MODE_CONTINUOUS",
                      "state": "STATE_ACTIVE",
                      "tradable_instrument": {"instrument": {"code": e["symbol"], "name": e["symbol"], "spot": spot}}}


def account_opened(e, _):
    kind = EXTERNAL if e["owner"] == "bridge" else GENERAL
    yield "accounts", {"id": account(e["owner"], e["denom"]), "party_id": party(e["owner"]), "asset_id": e["denom"],
                       "market_id": "", "type": kind[1]}


def transfer(e, time):
    kind = "DEPOSIT" if e["from"] == "bridge" else "TRANSFER_FUNDS_SEND"
    yield "ledger", {"account_from_id": account(e["from"], e["denom"]), "account_to_id": account(e["to"], e["denom"]),
                     "quantity": e["amount"], "account_from_balance": e["from_balance"],
                     "account_to_balance": e["to_balance"], "transfer_time": time, "type": "TRANSFER_TYPE_" + kind}


def balance(e, _):
    yield "balances", {"account_id": account(e["owner"], e["denom"]), "balance": e["balance"]}


def fill(e, _):
    yield "trades", {"id": sha256("fill/" + e["id"]), "market_id": market(e["market"]), "price": e["price"],
                     "size": e["size"], "buyer": party(e["buyer"]), "seller": party(e["seller"]), "buy_order": "", "sell_order": "",
                     "aggressor": "1" if e["taker"] == "buyer" else "2", "type": "1"}


def position(e, _):
    row = {"market_id": market(e["market"]), "party_id": party(e["owner"]), "loss": "0", "adjustment": "0",
           "loss_socialisation_amount": "0", "distressed_status": "POSITION_STATUS_UNSPECIFIED"}
    for prefix in ("", "pending_"):  # equal, because each fill of a spot market is settled at once
        row |= {prefix + "open_volume": e["volume"], prefix + "realised_pnl": e["realised"],
                prefix + "unrealised_pnl": "0", prefix + "average_entry_price": e["entry_price"],
                prefix + "average_entry_market_price": e["entry_price"]}
    yield "positions", row


def mark_price(e, _):
    yield "market_data", {"market": market(e["market"]), "mark_price": e["price"], "market_state": "STATE_ACTIVE",
                          "market_trading_mode": "TRADING_MODE_CONTINUOUS"}


ROWS = {"EventAssetListed": asset_listed, "EventMarketCreated": market_created, "EventAccountOpened": account_opened,
        "EventTransfer": transfer, "EventBalance": balance, "EventFill": fill, "EventPosition": position,
        "EventMarkPrice": mark_price}
# Tables with at most one row per block and key: the last one counts.
LAST_OF_BLOCK = {"balances": ("account_id",), "positions": ("party_id", "market_id")}


def events(block, results):
    """The events that took effect, in order, each with the hash of its transaction."""
    of_block = results.get("finalize_block_events") or []
    is_begin = [attributes(event).get("mode") == "BeginBlock" for event in of_block]
    yield from ((event, None) for event, begin in zip(of_block, is_begin) if begin)
    for tx, result in zip(block["block"]["data"]["txs"] or [], results["txs_results"] or [], strict=True):
        if result["code"] == 0:
            tx_hash = hashlib.sha256(base64.b64decode(tx)).hexdigest()
            yield from ((event, tx_hash) for event in result["events"] or [])
    yield from ((event, None) for event, begin in zip(of_block, is_begin) if not begin)


def attributes(event):
    return {attribute["key"]: attribute["value"] for attribute in event["attributes"]}


def decode(request):
    """The rows of a block. A pure function: no clock, no memory of earlier blocks, no input but the request."""
    rows, last = [], {}
    # PostgreSQL rounds nanoseconds; a block's time is cut.
    time = re.sub(r"(\.\d{6})\d+", r"\1", request["block"]["block"]["header"]["time"])
    for event, tx_hash in events(request["block"], request["results"]):
        if not event["type"].startswith("dex.v1.") or (name := event["type"].removeprefix("dex.v1.")) in WITHOUT_ROWS:
            continue
        if name not in ROWS:
            raise ValueError(f"event {event['type']} is unknown; a newer decoder is needed")
        values = {key: json.loads(value) for key, value in attributes(event).items() if key not in ("mode", "msg_index")}
        for table, row in ROWS[name](values, time):
            row |= {"tx_hash": tx_hash} if tx_hash else {}
            key = LAST_OF_BLOCK.get(table)
            if key:
                last[table, *(row[column] for column in key)] = row
            else:
                rows.append({"table": table, "values": row})
    return rows + [{"table": key[0], "values": row} for key, row in last.items()]


async def answer(request):
    from nats.micro.request import ServiceError
    try:
        rows = decode(json.loads(gzip.decompress(request.data)))
    except Exception as error:  # the operator reads it in the log of ingest and on its /readyz
        raise ServiceError("500", " ".join(f"{type(error).__name__}: {error}".split())[:300])
    await request.respond(gzip.compress(json.dumps({"rows": rows}).encode(), 1))


async def report(error):
    print(f"decoder: bus: {error}", file=sys.stderr, flush=True)


async def serve():
    import nats
    import nats.micro
    user, password = None, None
    if path := os.environ.get("MESH_BUS_CREDENTIALS"):
        with open(path) as file:
            user, _, password = file.read().strip().partition(":")
    authority = os.environ.get("MESH_BUS_TLS_CA")
    client = await nats.connect(
        os.environ.get("MESH_BUS_URL", "nats://127.0.0.1:4222").split(","), name="decoder", user=user, password=password,
        tls=ssl.create_default_context(cafile=authority) if authority else None,
        error_cb=report, max_reconnect_attempts=-1, reconnect_time_wait=0.5, ping_interval=5)
    service = await nats.micro.add_service(client, name="decoder", version="1.0.0", description="dex-chain")
    subject = os.environ.get("MESH_BUS_PREFIX", "mesh") + ".decode.Block"
    await service.add_endpoint(name="Block", subject=subject, handler=answer)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    print("decoder: serving " + subject, flush=True)
    await stop.wait()
    await (client.drain() if client.is_connected else client.close())  # drain: answers what it has taken


if __name__ == "__main__":
    if sys.argv[1:] == ["--stdin"]:
        for line in sys.stdin:
            block = json.loads(line)
            for row in decode(block):
                print(json.dumps({"height": int(block["results"]["height"]), **row}))
    elif not sys.argv[1:]:
        asyncio.run(serve())
    else:
        sys.exit(__doc__)
