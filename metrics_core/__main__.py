"""`python -m metrics_core`: the command line, where the console script `metrics-core` is not on the path."""

import sys

from metrics_core.cli import main

sys.exit(main())
