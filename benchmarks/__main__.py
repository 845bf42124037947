"""Runs all workloads, or those that are named."""

import sys

from benchmarks.harness import run_command
from benchmarks.suite import WORKLOADS

sys.exit(run_command(WORKLOADS))
