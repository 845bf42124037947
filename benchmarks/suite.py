"""All workloads, in the order in which they run and are shown."""

from benchmarks import arrays, documents, mappings, sas, skew, startup, trec_files

WORKLOADS = tuple(module.WORKLOAD for module in (documents, mappings, trec_files, arrays, skew, startup, sas))
