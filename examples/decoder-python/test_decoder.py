"""Decodes recorded blocks and compares the rows. Needs Python alone: python3 -m unittest discover examples/decoder-python"""

import json
import pathlib
import unittest

import decoder

HERE = pathlib.Path(__file__).parent


def lines(name):
    return [json.loads(line) for line in (HERE / name).read_text().splitlines()]


class Decoder(unittest.TestCase):
    maxDiff = None

    def test_recorded_blocks_give_the_expected_rows(self):
        blocks = lines("blocks.jsonl")
        self.assertTrue(any(tx["code"] for block in blocks for tx in block["results"]["txs_results"] or []))
        rows = [{"height": int(block["results"]["height"]), **row} for block in blocks for row in decoder.decode(block)]
        self.assertEqual(rows, lines("rows.jsonl"))

    def test_an_unknown_event_of_the_chain_is_an_error(self):
        block = lines("blocks.jsonl")[-1]
        block["results"]["finalize_block_events"].append({"type": "dex.v1.EventNew", "attributes": []})
        with self.assertRaisesRegex(ValueError, "dex.v1.EventNew"):
            decoder.decode(block)


if __name__ == "__main__":
    unittest.main()
