"""What the measurement relies on, tested without any queue: `make bench` runs these first."""
