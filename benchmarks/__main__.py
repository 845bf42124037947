"""Runs all workloads, or those that are named."""

import sys

from benchmarks import arrays, documents, mappings, skew, startup, trec_files
from benchmarks.harness import run_command

sys.exit(run_command([module.WORKLOAD for module in (documents, mappings, trec_files, arrays, skew, startup)]))
