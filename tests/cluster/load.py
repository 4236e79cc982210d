#!/usr/bin/env python3
"""Asks a gateway without pause until a file appears, and writes as JSON what came of it: how many requests, how many failed,
when failures began and ended, and how long answers took.

Three of four requests are reads, one is a whole download of sealed history, whose length, CRC-32 of every member and digest
must be correct; with --grpc also calls by curl over HTTP/2. Any status but 200 and any broken connection is a failure.
A request is given 30 s. Without --kept each request has its own connection.

Beside them some watch the height and come back as a browser does. A stream that breaks off, is refused, tells a problem or a
height below the last one is a failure; one that ends is none.
"""

import argparse
import collections
import http.client
import io
import json
import os
import subprocess
import threading
import time
import zipfile

READS = [
    "/blockchain/height",
    "/api/v2/delegations?epochId={epoch}&pagination.first=5",
    "/api/v2/network/limits",
]
DOWNLOAD = "/api/v2/networkhistory/export?fromBlock={begin}&toBlock={end}&table={table}"
HEIGHT = "/blockchain/height"
SEGMENTS = "/api/v2/networkhistory/segments"
TABLES = ["TABLE_TRADES", "TABLE_ORDERS", "TABLE_LEDGER", "TABLE_BLOCKS"]
PATIENCE_S = 30
RETRY_S = 1  # a stream may say something else


class Load:
    """All workers, and what they saw."""

    def __init__(self, options):
        self.options = options
        self.begin = time.monotonic()
        self.lock = threading.Lock()
        self.outcomes = collections.Counter()
        self.latencies = []
        self.failures = []
        self.digests = {}
        self.bytes = 0
        self.spans = []
        self.watchers = [{"last": None, "heard": 0, "retry": RETRY_S} for _ in range(options.watchers)]
        self.longest_silence = 0

    def connect(self):
        return http.client.HTTPConnection(self.options.host, self.options.port, timeout=PATIENCE_S)

    def learn(self):
        """Asks which spans are sealed; downloads end at the newest."""
        connection = self.connect()
        connection.request("GET", SEGMENTS)
        answer = json.loads(connection.getresponse().read())
        connection.close()
        segments = answer["segments"]
        self.spans = sorted((int(one["fromHeight"]), int(one["toHeight"])) for one in segments)
        if not self.spans:
            raise SystemExit("nothing is sealed yet")

    def is_over(self):
        late = time.monotonic() - self.begin > self.options.seconds
        return late or (self.options.until and os.path.exists(self.options.until))

    def note(self, kind, what, began, fault):
        took = time.monotonic() - began
        with self.lock:
            self.outcomes[kind] += 1
            self.latencies.append((kind, took))
            if fault:
                self.failures.append((began - self.begin, began + took - self.begin, what, fault))

    def path(self, number):
        is_download = {"download": True, "read": False}.get(self.options.only, number % 4 == 3)
        if is_download:
            kind = number // self.options.workers + number
            begin, end = self.spans[kind % len(self.spans)][0], self.spans[-1][1]
            return "download", DOWNLOAD.format(begin=begin, end=end, table=TABLES[kind % len(TABLES)])
        return "read", READS[number % len(READS)].format(epoch=1 + number % 20)

    def fault_of(self, kind, path, answer, body):
        """What is wrong with an answer; nothing when all is well."""
        if answer.status != 200:
            return f"{answer.status} {body[:120].decode(errors='replace')}"
        if kind != "download":
            return None
        if len(body) != int(answer.headers["Content-Length"]):
            return f"{len(body)} bytes of {answer.headers['Content-Length']}"
        damaged = zipfile.ZipFile(io.BytesIO(body)).testzip()
        if damaged:
            return f"CRC of {damaged}"
        digest = (answer.headers["ETag"], answer.headers["Repr-Digest"])
        with self.lock:
            self.bytes += len(body)
            if self.digests.setdefault(path, digest) != digest:
                return f"digest {digest}, was {self.digests[path]}"
        return None

    def work(self, worker):
        """One after the other, at this worker's share of the rate."""
        connection, number = None, worker
        while not self.is_over():
            kind, path = self.path(number)
            number += self.options.workers
            began = time.monotonic()
            try:
                connection = connection or self.connect()
                connection.request("GET", path)
                answer = connection.getresponse()
                fault = self.fault_of(kind, path, answer, answer.read())
                is_kept = self.options.kept and answer.headers.get("Connection") != "close"
            except (OSError, http.client.HTTPException, zipfile.BadZipFile) as error:
                fault, is_kept = repr(error), False
            if not is_kept:
                connection.close()
                connection = None
            self.note(kind, path.split("?")[0], began, fault)
            time.sleep(max(0, self.options.workers / self.options.rate - (time.monotonic() - began)))

    def call(self):
        """A unary call a second: the message is empty, the trailers must say 0."""
        command = ["curl", "--silent", "--http2-prior-knowledge", "--max-time", str(PATIENCE_S), "--dump-header", "-",
                   "--output", "/dev/null", "--header", "content-type: application/grpc", "--header", "te: trailers",
                   "--data-binary", "@-", f"http://{self.options.grpc}/api.v2.NodeInfo/GetNetworkLimits"]
        while not self.is_over():
            began = time.monotonic()
            run = subprocess.run(command, input=bytes(5), capture_output=True, check=False)
            fault = None if b"grpc-status: 0" in run.stdout else f"curl {run.returncode}: {run.stdout[-160:]!r}"
            self.note("grpc", "GetNetworkLimits", began, fault)
            time.sleep(max(0, 1 - (time.monotonic() - began)))

    def watch(self, state):
        """Watches the height; resumes with the last height when a stream ends."""
        while not self.is_over():
            began, connection = time.monotonic(), self.connect()
            wish = {"Accept": "text/event-stream"} | ({"Last-Event-ID": str(state["last"])} if state["last"] else {})
            try:
                connection.request("GET", HEIGHT, headers=wish)
                answer = connection.getresponse()
                fault = None if answer.status == 200 else f"{answer.status} {answer.read(120)!r}"
                if not fault:
                    self.follow(answer, state)
            except (OSError, http.client.HTTPException) as error:
                fault = repr(error)
            connection.close()
            if not self.is_over():
                self.note("watch", HEIGHT, began, fault)
            time.sleep(state["retry"])

    def follow(self, answer, state):
        """Reads one stream to its end, and records errors in its events."""
        rest = b""
        # Unlike readline, read1 distinguishes an end from a broken connection.
        while not self.is_over() and (piece := answer.read1()):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                name, _, value = line.decode().partition(": ")
                if name == "retry":
                    state["retry"] = int(value) / 1000
                elif name == "event" and value == "problem":
                    self.note("watch", HEIGHT, time.monotonic(), "a problem")
                elif name == "id":
                    self.hear(int(value), state)

    def hear(self, height, state):
        """Records a height that a watcher received."""
        if state["last"] and height < state["last"]:
            self.note("watch", HEIGHT, time.monotonic(), f"{height} after {state['last']}")
        state["last"] = height
        self.end_silence(state)

    def end_silence(self, state):
        """Records the silence of a watcher, which ends with an event or with the load."""
        with self.lock:
            now = time.monotonic()
            self.longest_silence = max(self.longest_silence, now - state["heard"])
            state["heard"] = now

    def run(self):
        self.learn()
        self.begin = time.monotonic()
        # They are not waited for: a stream that is silent has no end.
        for state in self.watchers:
            state["heard"] = self.begin
            threading.Thread(target=self.watch, args=(state,), daemon=True).start()
        threads = [threading.Thread(target=self.work, args=(one,)) for one in range(self.options.workers)]
        if self.options.grpc:
            threads.append(threading.Thread(target=self.call))
        for thread in threads:
            thread.start()
        if self.options.ready:
            with open(self.options.ready, "w", encoding="ascii"):
                pass
        for thread in threads:
            thread.join()
        for state in self.watchers:
            self.end_silence(state)

    def report(self):
        def quantile(kinds, share):
            taken = sorted(took for kind, took in self.latencies if kind in kinds)
            return round(taken[min(len(taken) - 1, int(len(taken) * share))], 3) if taken else None

        one = {self.options.only or "read"}
        return {
            "requests": sum(self.outcomes.values()), "kinds": dict(self.outcomes), "failed": len(self.failures),
            "seconds": round(time.monotonic() - self.begin, 1), "megabytes": round(self.bytes / 1e6, 1),
            "p50": quantile(one, 0.5), "p99": quantile(one, 0.99), "max": quantile(one, 1),
            "download_p50": quantile({"download"}, 0.5), "download_p99": quantile({"download"}, 0.99),
            "longest_silence": round(self.longest_silence, 1),
            "first_failure": round(min((one[0] for one in self.failures), default=0), 2),
            "last_failure": round(max((one[1] for one in self.failures), default=0), 2),
            "slowest_failures": [
                f"{what} begun at {begin:.1f} s took {end - begin:.1f} s: {fault[:80]}"
                for begin, end, what, fault in sorted(self.failures, key=lambda one: one[0] - one[1])[:4]
            ],
            "failures": dict(collections.Counter(f"{what}: {fault[:60]}" for _, _, what, fault in self.failures).most_common(8)),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("--grpc", help="HOST:PORT of the port for gRPC")
    parser.add_argument("--kept", action="store_true", help="keep connections")
    parser.add_argument("--only", choices=["read", "download"])
    parser.add_argument("--rate", type=float, default=40, help="requests a second")
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--watchers", type=int, default=8)
    parser.add_argument("--until", help="end when this file is there")
    parser.add_argument("--ready", help="create this file when the first requests are in flight")
    parser.add_argument("--seconds", type=float, default=600, help="end after so long in any case")
    load = Load(parser.parse_args())
    load.run()
    print(json.dumps(load.report()))


if __name__ == "__main__":
    main()
