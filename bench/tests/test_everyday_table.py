"""The tables of everyday load: Markdown, ratios within a round, a row for everyone and a cause for what is missing."""

import unittest

from harness.everyday_table import Standing, empty, tables
from harness.loads import LPUSH
from harness.measurement import Figures


def one(per_s: object, cpu_us: float, verdict: str = "yes") -> Figures:
    return Figures(10, per_s, cpu_us, verdict == "yes", verdict)


def row(text: str, name: str) -> list:
    line = next(line for line in text.splitlines() if line.startswith(f"| {name} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


class EverydayTableTest(unittest.TestCase):
    def setUp(self) -> None:
        self.standings = empty(["other", "baton"])
        self.standings["baton"]["push"] = Standing({1: one(1000.0, 10.0), 2: one(100.0, 20.0)})
        self.standings["other"]["push"] = Standing({1: one(500.0, 40.0), 2: one(50.0, 80.0)})
        self.standings[LPUSH]["push"] = Standing({1: one(2000.0, 5.0), 2: one(200.0, 10.0)})

    def both(self) -> list:
        return tables(self.standings, []).split("\n\n")

    def test_figures_and_ratios_are_those_of_the_same_round(self) -> None:
        figures, ratios = self.both()[:2]
        self.assertEqual(row(figures, "baton")[:3], ["baton", "550", "15.0"])
        self.assertEqual(row(figures, "baton")[-1], "164%")
        self.assertEqual(row(ratios, "other")[:3], ["other", "2.00", "0.25"])
        self.assertEqual(row(ratios, LPUSH)[:5], [LPUSH, "0.50", "2.00", "–", "–"])

    def test_baton_comes_first_then_the_bare_command(self) -> None:
        names = [line.split("|")[1].strip() for line in self.both()[0].splitlines()[2:]]
        self.assertEqual(names, ["baton", LPUSH, "other"])

    def test_it_is_markdown(self) -> None:
        for table in self.both()[:2]:
            widths = {line.count("|") for line in table.splitlines()}
            self.assertEqual(len(widths), 1, table)

    def test_what_is_missing_has_its_cause(self) -> None:
        for standing in self.standings["other"].values():
            standing.skipped = "not installed"
        self.standings["baton"]["wait"].skipped = "it ended"
        self.standings["baton"]["burn"].rounds[1] = one(None, 1.0, "no: 1 lost, 0 repeated")
        text = tables(self.standings, ["a remark"])
        self.assertIn("a remark\n", text)
        self.assertIn("other skipped: not installed", text)
        self.assertIn("baton, 10 ms waiting/s, skipped: it ended", text)
        self.assertIn("baton, 1 ms CPU/s: exactly once: no: 1 lost, 0 repeated", text)

    def test_without_baton_there_are_no_ratios(self) -> None:
        text = tables(empty(["other"]), [])
        self.assertNotIn("÷", text)


if __name__ == "__main__":
    unittest.main()
