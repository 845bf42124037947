"""All workloads, in the order in which they run and are shown."""

from benchmarks import arrays, comparison, documents, mappings, skew, startup, trec_files

WORKLOADS = tuple(module.WORKLOAD for module in (documents, mappings, trec_files, arrays, skew, comparison, startup))
