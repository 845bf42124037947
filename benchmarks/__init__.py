"""Times of metrics-core and of its peers on the same inputs; `python -m benchmarks` runs them all."""
