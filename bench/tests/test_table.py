"""The table: ratios within a round, and a row for everyone."""

import unittest

from harness.measurement import Measurement
from harness.table import Record, table


def one(process_per_s: float, exactly_once: bool = True) -> Measurement:
    return Measurement(10, 100.0, process_per_s, 1.0, exactly_once, "yes" if exactly_once else "no: 1 lost, 0 repeated")


def cells(text: str, name: str) -> list:
    line = next(line for line in text.splitlines() if line.startswith(f"| {name} "))
    return [cell.strip() for cell in line.strip("|").split("|")]


class TableTest(unittest.TestCase):
    def setUp(self) -> None:
        self.baton = Record("baton", {1: one(1000.0), 2: one(100.0), 3: one(900.0)})

    def test_a_ratio_compares_what_ran_in_the_same_round(self) -> None:
        peer = Record("other", {1: one(100.0), 2: one(10.0), 3: one(100.0)})
        row = cells(table([peer, self.baton], self.baton), "other")
        self.assertEqual(row[3], "100")
        self.assertEqual(row[4], "90%")
        self.assertEqual(row[8], "10.0")

    def test_one_bad_round_is_a_bad_verdict(self) -> None:
        peer = Record("other", {1: one(100.0), 2: one(100.0, exactly_once=False)})
        self.assertEqual(cells(table([peer, self.baton], self.baton), "other")[6], "no: 1 lost, 0 repeated")

    def test_the_absent_have_a_row_and_a_cause(self) -> None:
        text = table([self.baton, Record("other", skipped="not installed")], self.baton)
        self.assertEqual(cells(text, "other")[-1], "skipped")
        self.assertIn("other skipped: not installed", text)

    def test_without_baton_there_are_no_ratios(self) -> None:
        absent = Record("baton", skipped="not built")
        row = cells(table([absent, Record("other", {1: one(5.0)})], absent), "other")
        self.assertEqual(row[7:9], ["–", "–"])


if __name__ == "__main__":
    unittest.main()
