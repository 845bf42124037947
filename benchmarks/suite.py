"""All workloads, in the order in which they run and are shown."""

from benchmarks import (
    arrays,
    comparison,
    documents,
    grouping,
    haystack_pipeline,
    judges,
    mappings,
    sas,
    skew,
    startup,
    tables,
    trec_files,
)

WORKLOADS = tuple(
    module.WORKLOAD
    for module in (
        documents,
        haystack_pipeline,
        mappings,
        trec_files,
        arrays,
        skew,
        tables,
        grouping,
        comparison,
        startup,
        sas,
        judges,
    )
)
