#!/usr/bin/env python3
"""What the walk saw, as lines of JSON in WALK/seen.jsonl, and as a table.

table.py note FILE STEP EVENT REPORT TOOK [REMARK]  adds a line; REPORT is what load.py printed, or "-"
table.py print FILE                                 prints the table as Markdown; a later line of an event takes the place of an earlier
"""

import json
import sys
import time

HEAD = "| Step | Event | Took, s | Failed | Failures lasted, s | p50 / p99 of reads, ms | Watchers' longest silence, s | Seen |\n|---|---|---|---|---|---|---|---|"


def note(file, step, event, report, took, remark=""):
    line = {"time": time.strftime("%F %T"), "step": step, "event": event, "took": took, "remark": remark}
    if report != "-":
        with open(report, encoding="utf-8") as read:
            line["load"] = json.load(read)
    with open(file, "a", encoding="utf-8") as lines:
        lines.write(json.dumps(line) + "\n")
    print(line["time"], row(line), line.get("load", {}).get("failures") or "")


def row(line):
    load = line.get("load")
    cells = [line["step"], line["event"], line["took"], "", "", "", "", line["remark"]]
    if load:
        lasted = load["last_failure"] - load["first_failure"]
        cells[3] = f"{load['failed']} of {load['requests']}"
        cells[4] = f"{lasted:.1f}" if load["failed"] else ""
        cells[5] = f"{load['p50'] * 1000:.0f} / {load['p99'] * 1000:.0f}"
        cells[6] = f"{load['longest_silence']:.1f}"
    return "| " + " | ".join(cells) + " |"


def main():
    verb, file, *rest = sys.argv[1:]
    if verb == "note":
        return note(file, *rest)
    with open(file, encoding="utf-8") as lines:
        newest = {(line["step"], line["event"]): line for line in map(json.loads, lines)}
    print(HEAD, *map(row, newest.values()), sep="\n")


if __name__ == "__main__":
    main()
