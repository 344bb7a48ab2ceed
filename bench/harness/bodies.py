"""The bodies every producer reads, so that all of them carry the same bytes.

Guaranteed: the same seed and count give the same file. A body is 100 printable bytes, ten digits of its number and
ninety random characters; job queues that encode their jobs as JSON can carry it as it is. One body a line.
"""

from __future__ import annotations

import base64
import random
from pathlib import Path

NUMBER_DIGITS = 10  # the peers' programs read the number back from these
BODY_BYTES = 100


def write_bodies(path: Path, count: int, seed: int) -> None:
    source = random.Random(seed)
    random_chars = BODY_BYTES - NUMBER_DIGITS
    with path.open("w", encoding="ascii") as out:
        for number in range(count):
            noise = base64.urlsafe_b64encode(source.randbytes(random_chars * 3 // 4 + 1)).decode()[:random_chars]
            out.write(f"{number:0{NUMBER_DIGITS}d}{noise}\n")
