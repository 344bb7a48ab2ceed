"""A measurement of made-up queues: the verdict tells lost and repeated jobs, the rate follows the rule."""

import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from harness import peer
from harness.measurement import Bench, Failed, Measurement
from harness.peer import Peer

PUSH = "print('{\"push_s\": 0.5}')"
WORK = """
import os, time
path = os.path.join(os.environ["BENCH_TALLY"], "{name}.tally")
with open(path + ".new", "wb") as out:
    out.write(b'{{"handled":{handled},"first_ns":{first},"last_ns":{last}}}\\n' + bytes({counts}))
os.replace(path + ".new", path)
"""


class IdleServer:
    """A server whose queues are always empty."""

    port = 1

    def cpu_s(self) -> float:
        return 1.0

    def total_length(self, lengths: tuple) -> int:
        return 0


def written(name: str, counts: list, first: int = 0, last: int = 2_000_000_000) -> str:
    return WORK.format(name=name, counts=counts, handled=sum(counts), first=first, last=last)


def measured(work: str, jobs: int) -> Measurement:
    made_up = Peer(name="made-up", full_jobs=jobs, quick_jobs=jobs, cwd=Path("."), push=(sys.executable, "-c", PUSH),
                   work=(sys.executable, "-c", work), unfinished=(), produce=(), loads={},
                   find_version=lambda folder: "0")
    with tempfile.TemporaryDirectory() as name, mock.patch.object(peer, "STALL_S", 0.2), \
            mock.patch.object(peer, "AFTERMATH_S", 0.0):
        folder = Path(name)
        return made_up.measure(Bench(IdleServer(), folder, folder / "bodies", 20.0), jobs)


class PeerTest(unittest.TestCase):
    def test_each_job_once_over_two_processes(self) -> None:
        work = written("1", [1, 0, 1, 0, 0], first=5) + written("2", [0, 1, 0, 1, 1], first=9, last=5 + 10**9)
        one = measured(work + "time.sleep(600)", 5)
        self.assertEqual(one.verdict, "yes")
        self.assertEqual(one.push_per_s, 10.0)
        self.assertAlmostEqual(one.process_per_s, 4 / (2 - 5e-9))

    def test_a_lost_job_and_a_repeated_one(self) -> None:
        one = measured(written("1", [1, 0, 1, 2]) + "time.sleep(600)", 4)
        self.assertEqual((one.exactly_once, one.verdict), (False, "no: 1 lost, 1 repeated"))

    def test_a_lost_job_alone_does_not_wait_for_ever(self) -> None:
        one = measured(written("1", [1, 0, 1, 1]) + "time.sleep(600)", 4)
        self.assertEqual(one.verdict, "no: 1 lost, 0 repeated")

    def test_a_worker_that_ends_is_a_failure_with_its_cause(self) -> None:
        with self.assertRaisesRegex(Failed, "ended after 0 of 3 jobs: broken"):
            measured("raise SystemExit('broken')", 3)


if __name__ == "__main__":
    unittest.main()
