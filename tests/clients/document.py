#!/usr/bin/env python3
"""What the walk reads out of the document.

document.py values FILE        the examples of its parameters, as exports of a shell
document.py missing FILE LOG   operations that a driver left out; LOG has a line "called NAME" for each that it called, and
                               "skipped NAME: WHY" for what its client cannot call
"""

import json
import shlex
import sys

# The variables of the drivers, and the operation and parameter whose example each of them is.
VALUES = {
    "PARTY": ("ExportLedgerEntries", "partyId"),
    "ASSET": ("ExportLedgerEntries", "assetId"),
    "MARKET": ("ListCandleIntervals", "marketId"),
    "CANDLE": ("ListCandleData", "candleId"),
    "ORDER": ("GetOrder", "orderId"),
    "ORACLE_SPEC": ("GetOracleSpec", "oracleSpecId"),
    "WITHDRAWAL": ("GetWithdrawal", "id"),
    "FROM_BLOCK": ("ExportNetworkHistory", "fromBlock"),
    "TO_BLOCK": ("ExportNetworkHistory", "toBlock"),
}

# Their body is an encoded transaction, which `mesh tx sign` does not print.
NOT_CALLED = {"CheckRawTransaction", "SubmitRawTransaction"}


def operations(file):
    with open(file, encoding="utf-8") as text:
        document = json.load(text)
    return {each["operationId"]: each for item in document["paths"].values() for each in item.values()}


def values(file):
    known = operations(file)
    for variable, (operation, name) in VALUES.items():
        [parameter] = [each for each in known[operation]["parameters"] if each.get("name") == name]
        print(f"export {variable}={shlex.quote(parameter['example'])}")


def missing(file, log):
    with open(log, encoding="utf-8") as lines:
        called = {line.split()[1].rstrip(":") for line in lines if line.startswith(("called ", "skipped "))}
    print(*sorted(operations(file).keys() - called - NOT_CALLED))


if __name__ == "__main__":
    {"values": values, "missing": missing}[sys.argv[1]](*sys.argv[2:])
