"""Shows that the fleet simulator finds faults: puts each of them back into a copy of the sources and runs random fleets.

    python3 fuzz/mutations/run.py [--seed N] [--fleets N] [--only NAME ...]

Each patch beside this file takes one fix out. Its first lines say which (`Takes out:`), and how the rules begin of which one has to
notice (`Noticed by:`). It is wrong (exit 1) if the sources as they are break a rule, or if a patch does not apply, does not compile,
or is not noticed by these rules in any of the fleets. A seed is run again in target/mutants/tree, where the last mutant is left:
`BATON_SEED=N BATON_FLEETS=1 cargo test --release -p baton-testkit --test simulator random`.
"""

import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = ROOT / "target" / "mutants"
# One place for all mutants: cargo builds anew only what differs from the one before.
TREE = TARGET / "tree"
SIMULATOR = ["test", "--release", "--locked", "-p", "baton-testkit", "--test", "simulator"]
# What is built runs for a minute: it need not be the fastest, but soon there.
QUICK = {"CARGO_TARGET_DIR": str(TARGET), "CARGO_PROFILE_RELEASE_LTO": "off", "CARGO_PROFILE_RELEASE_INCREMENTAL": "true"}


def refresh():
    """Makes the copy what the sources are, with changes that are not committed. What is equal keeps its time for cargo."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout
    wanted = {TREE / name for name in listed.split("\0") if (ROOT / name).is_file()}
    for copy in [path for path in TREE.rglob("*") if path.is_file() and path not in wanted]:
        copy.unlink()
    for copy in wanted:
        source = ROOT / copy.relative_to(TREE)
        if not copy.is_file() or copy.read_bytes() != source.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)


def run(command, **environment):
    # The copy lies inside of a repository, which is not to be patched.
    environment = {**os.environ, **QUICK, "GIT_CEILING_DIRECTORIES": str(TARGET), **environment}
    return subprocess.run(command, cwd=TREE, env=environment, capture_output=True, text=True)


def last(ran, lines=15):
    return "\n".join((ran.stdout + ran.stderr).strip().splitlines()[-lines:])


def fleets(cargo, patch, seed, count):
    """Runs the fleets with a patch, if any: the rule that each failing seed broke, or a text that says why there are none."""
    refresh()
    if patch:
        applied = run(["git", "apply", str(patch)])
        if applied.returncode:
            return f"does not apply:\n{last(applied)}"
    built = run([cargo, *SIMULATOR, "--no-run"])
    if built.returncode:
        return f"does not compile:\n{last(built, 40)}"
    ran = run(
        [cargo, *SIMULATOR, "random", "--", "--nocapture", "--test-threads", "2"],
        BATON_SEED=str(seed), BATON_FLEETS=str(count), BATON_ALL="1",
    )
    output = ran.stdout + ran.stderr
    broken = {int(seed): rule for seed, rule in re.findall(r"^(?:test .*)?seed (\d+): (.*)", output, re.MULTILINE)}
    kept = sum(int(kept) for kept in re.findall(r"^(\d+) fleets$", output, re.MULTILINE))
    if kept + len(broken) != count:
        return f"ended after {kept + len(broken)} of {count} fleets:\n{last(ran)}"
    return broken


def tell(name, broken, count):
    seeds = " ".join(str(seed) for seed in sorted(broken)[:5])
    print(f"{name}: {len(broken)} of {count} fleets failed" + (f", first seeds {seeds}" if seeds else ""))
    rules = collections.Counter(re.sub(r"\d+", "N", rule.split(":")[0]) for rule in broken.values())
    for rule, failed in rules.most_common():
        print(f"  {failed:>5}  {rule}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--fleets", type=int, default=300, help="fleets of each mutant (300)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="mutants whose names begin so")
    given = parser.parse_args()
    cargo = os.environ.get("CARGO", "cargo")
    sys.stdout.reconfigure(line_buffering=True)
    patches = sorted(HERE.glob("*.patch"))
    if given.only:
        patches = [patch for patch in patches if patch.name.startswith(tuple(given.only))]
    if not patches:
        sys.exit("there is no such mutant")
    TREE.mkdir(parents=True, exist_ok=True)
    as_it_is = fleets(cargo, None, given.seed, given.fleets)
    if isinstance(as_it_is, str):
        sys.exit(f"without a mutation it {as_it_is}")
    tell("without a mutation", as_it_is, given.fleets)
    if as_it_is:
        sys.exit("the sources break a rule as they are")
    wrong = []
    for patch in patches:
        rules = tuple(re.findall(r"^Noticed by: (.+)$", patch.read_text(), re.MULTILINE))
        broken = fleets(cargo, patch, given.seed, given.fleets)
        if isinstance(broken, str):
            print(f"{patch.stem} {broken}")
        else:
            tell(patch.stem, broken, given.fleets)
        if isinstance(broken, str) or not any(found.startswith(rules) for found in broken.values()):
            wrong.append(patch.stem)
            print(f"  not noticed by: {', or '.join(rules)}")
    if wrong:
        sys.exit("not found: " + ", ".join(wrong))


if __name__ == "__main__":
    main()
