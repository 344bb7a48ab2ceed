"""Everyday load on made-up queues: producers begin together and share the jobs, each job and each failure is counted."""

import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from harness import peer
from harness.children import ChildFailed
from harness.everyday import measure
from harness.loads import BOTH, BURN, FAIL, PUSH, Kind, Load
from harness.measurement import Bench, Failed, Figures
from harness.peer import Peer

# Waits at the gate, and leaves a file for each job it pushes.
PRODUCE = """
import json, os, time
first, count = int(os.environ["BENCH_FIRST"]), int(os.environ["BENCH_COUNT"])
open(os.environ["BENCH_READY"], "w").close()
while not os.path.exists(os.environ["BENCH_GO"]): time.sleep(0.01)
begun = time.monotonic_ns()
for number in range(first, first + count):
    open(os.path.join(os.environ["BENCH_BODIES"], str(number)), "w").close()
print(json.dumps({"begun_ns": begun, "ended_ns": begun + 10**9}))
"""
# Counts what has been pushed, until it is stopped.
WORK = """
import json, os, time
path = os.path.join(os.environ["BENCH_TALLY"], f"{os.getpid()}.tally")
jobs, first = int(os.environ["BENCH_JOBS"]), time.monotonic_ns()
while True:
    counts = [int(os.path.exists(os.path.join(os.environ["BENCH_BODIES"], str(number)))) for number in range(jobs)]
    head = {"handled": sum(counts), "failed": FAILED, "first_ns": first, "last_ns": time.monotonic_ns()}
    with open(path + ".new", "wb") as out:
        out.write(json.dumps(head).encode() + b"\\n" + bytes(counts))
    os.replace(path + ".new", path)
    time.sleep(0.02)
"""


class CountingServer:
    """A server whose queues are always empty, and which has used a millisecond more each time it is asked."""

    port = 1

    def __init__(self) -> None:
        self.asked = 0

    def cpu_s(self) -> float:
        self.asked += 1
        return self.asked / 1000

    def total_length(self, lengths: tuple) -> int:
        return 0


def measured(kind: Kind, jobs: int, failed: int = 0, produce: str = PRODUCE, **load: object) -> Figures:
    def program(text: str) -> tuple:
        return (sys.executable, "-c", text)

    work = program(WORK.replace("FAILED", str(failed)))
    made_up = Peer(name="made-up", full_jobs=jobs, quick_jobs=jobs, cwd=Path("."), push=(), work=work, unfinished=(),
                   produce=program(produce), loads={kind.name: Load(jobs, work, **load)},
                   find_version=lambda folder: "0")
    with tempfile.TemporaryDirectory() as name, mock.patch.object(peer, "STALL_S", 0.2), \
            mock.patch.object(peer, "AFTERMATH_S", 0.0):
        folder, queue = Path(name), Path(name) / "queue"
        queue.mkdir()
        return measure(made_up, kind, Bench(CountingServer(), folder, queue, 20.0), quick=False)


class EverydayTest(unittest.TestCase):
    def test_sixteen_producers_push_every_job_between_them(self) -> None:
        one = measured(PUSH, 50)
        self.assertEqual((one.jobs, one.verdict), (50, "yes"))
        self.assertAlmostEqual(one.redis_cpu_us, 1000 / 50)
        self.assertLessEqual(one.per_s, 50.0)  # from the first call to the last answer, which is a second later at least

    def test_the_worker_is_at_work_when_the_others_are_pushed(self) -> None:
        one = measured(BOTH, 20)
        self.assertEqual(one.verdict, "yes")
        self.assertGreater(one.per_s, 0)

    def test_a_worker_process_a_core_that_each_take_the_job_is_a_repeat(self) -> None:
        self.assertEqual(measured(BURN, 3, processes=2).verdict, "no: 0 lost, 3 repeated")

    def test_failed_attempts_are_counted(self) -> None:
        self.assertEqual(measured(FAIL, 20, failed=4).verdict, "yes")
        self.assertEqual(measured(FAIL, 20, failed=3).verdict, "no: 3 attempts failed instead of 4")

    def test_a_rate_that_says_nothing_is_left_out(self) -> None:
        one = measured(FAIL, 1, failed=2, no_rate="it waits")
        self.assertEqual((one.per_s, one.verdict), (None, "yes"))

    def test_a_producer_that_fails_is_a_failure_with_its_cause(self) -> None:
        with self.assertRaisesRegex(ChildFailed, "a producer failed: broken"):
            measured(PUSH, 16, produce="raise SystemExit('broken')")
        with self.assertRaisesRegex(Failed, "did not report its time: nothing"):
            measured(BURN, 1, produce=PRODUCE + "print('nothing')")


class BatonTest(unittest.TestCase):
    def test_every_kind_is_among_the_figures_it_prints(self) -> None:
        from harness.baton import EVERYDAY, Baton, BatonEveryday
        report = {name: 2.0 for fields in EVERYDAY.values() for name in fields[:2]}
        with tempfile.TemporaryDirectory() as name:
            binary = Path(name) / "baton"
            binary.write_text(f"#!{sys.executable}\nprint('''{json.dumps({'redis': report})}''')\n")
            binary.chmod(0o755)
            baton = BatonEveryday(Baton(binary))
            (course,) = baton.courses()
            figures = baton.measure(Bench(CountingServer(), Path(name), Path(name), 20.0), course, quick=True)
        self.assertEqual({kind.name for kind in course} - figures.keys(), set())
        self.assertEqual(figures["burn"], Figures(100, 2.0, 2.0, True, "yes"))


if __name__ == "__main__":
    unittest.main()
