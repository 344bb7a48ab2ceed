"""Counts of instructions: what grew by more than a tenth fails, with both numbers; what shrank is to be recorded."""

import tempfile
import unittest
from pathlib import Path
from unittest import mock

from instructions import check
from instructions.check import Counts, Failed, compare, other_compiler


class CompareTest(unittest.TestCase):
    def test_growth_beyond_a_tenth_fails_with_both_numbers(self) -> None:
        (verdict,) = compare({"noop": 200.0}, {"noop": 221.0})
        self.assertTrue(verdict.failed)
        self.assertIn("221.0 instructions a message, 200.0 recorded (+10.5%)", verdict.line)
        self.assertNotIn("\n", verdict.line)

    def test_growth_within_a_tenth_passes(self) -> None:
        (verdict,) = compare({"noop": 200.0}, {"noop": 219.0})
        self.assertFalse(verdict.failed)
        self.assertNotIn("--record", verdict.line)

    def test_shrinking_beyond_a_tenth_passes_with_a_hint(self) -> None:
        (verdict,) = compare({"noop": 200.0}, {"noop": 179.0})
        self.assertFalse(verdict.failed)
        self.assertIn("--record", verdict.line)

    def test_one_that_grew_is_not_made_up_for_by_one_that_shrank(self) -> None:
        verdicts = compare({"build": 100.0, "parse": 100.0}, {"build": 50.0, "parse": 150.0})
        self.assertEqual([verdict.failed for verdict in verdicts], [False, True])

    def test_what_is_on_one_side_only_fails(self) -> None:
        verdicts = compare({"gone": 100.0}, {"new": 100.0})
        self.assertEqual([(verdict.line.split(":")[0], verdict.failed) for verdict in verdicts],
                         [("new", True), ("gone", True)])


class CountTest(unittest.TestCase):
    def test_the_start_of_a_program_does_not_count(self) -> None:
        ran = lambda program, name, times, folder: (1_000_000 + 70 * times, 10 * times)
        with mock.patch.object(check, "_run", ran):
            counts = check.counts_of("1.0.0", "made-up", Path("program"), Path("."))
        self.assertEqual(set(counts.instructions.values()), {7.0})

    def test_work_that_does_not_grow_with_its_repetitions_is_no_measurement(self) -> None:
        with mock.patch.object(check, "_run", lambda program, name, times, folder: (70 * times, 10)):
            with self.assertRaisesRegex(Failed, "not twice as many"):
                check.counts_of("1.0.0", "made-up", Path("program"), Path("."))


class CountsTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "counts.json"

    def test_what_was_recorded_is_read(self) -> None:
        counts = Counts("1.0.0", "made-up", {"noop": 1.5})
        counts.write(self.path)
        self.assertEqual(Counts.read(self.path), counts)

    def test_nothing_recorded_is_a_failure_that_says_what_to_do(self) -> None:
        with self.assertRaisesRegex(Failed, "--record"):
            Counts.read(self.path)

    def test_another_compiler_is_mentioned(self) -> None:
        old, new = Counts("1.0.0", "made-up", {}), Counts("1.1.0", "made-up", {})
        self.assertIsNone(other_compiler(old, old))
        self.assertIn("rustc 1.0.0, this is 1.1.0", other_compiler(old, new) or "")


class SkipTest(unittest.TestCase):
    def test_without_valgrind_it_is_said_that_nothing_was_compared(self) -> None:
        with mock.patch("shutil.which", return_value=None), mock.patch("builtins.print") as told, \
                mock.patch("sys.argv", ["check.py"]):
            self.assertEqual(check.main(), 0)
        self.assertIn("skipped: valgrind is missing", told.call_args.args[0])


if __name__ == "__main__":
    unittest.main()
