"""The parts of the side-by-side measurement; `bench/run.py` puts them together."""
