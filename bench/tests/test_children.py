"""Children end when they are told to, with everything they started."""

import os
import sys
import tempfile
import time
import unittest
from pathlib import Path

from harness.children import Child, ChildFailed, finish

# Ignores SIGTERM, starts a child that does too, and says so.
STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pid = os.fork()
if pid: print(pid, flush=True)
time.sleep(600)
"""


class ChildTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.log = Path(folder.name) / "log"

    def test_a_failure_names_its_cause(self) -> None:
        with self.assertRaisesRegex(ChildFailed, "ended with 1: the cause"):
            finish([sys.executable, "-c", "raise SystemExit('the cause')"], self.log, 30.0)
        with self.assertRaisesRegex(ChildFailed, "No such file"):
            finish(["./no-such-program"], self.log, 30.0)

    def test_a_time_limit_ends_it(self) -> None:
        with self.assertRaisesRegex(ChildFailed, "did not finish within 0.2 s"):
            finish([sys.executable, "-c", "import time; time.sleep(600)"], self.log, 0.2)

    def test_nothing_of_its_group_is_left(self) -> None:
        from harness import children
        grace, children.STOP_GRACE_S = children.STOP_GRACE_S, 0.2
        self.addCleanup(setattr, children, "STOP_GRACE_S", grace)
        with Child([sys.executable, "-c", STUBBORN], self.log) as child:
            while not child.output().strip():
                time.sleep(0.01)
            grandchild = int(child.output())
        with self.assertRaises(ProcessLookupError):
            for _ in range(500):  # killed already; whoever adopted it has to notice
                os.kill(grandchild, 0)
                if _is_zombie(grandchild):
                    raise ProcessLookupError
                time.sleep(0.01)


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False


if __name__ == "__main__":
    unittest.main()
