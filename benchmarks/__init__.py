"""Benchmarks: each takes its ratios in one run; `python -m benchmarks` runs them all."""
