"""`python -m llm_judges`: the command line, where the console script `llm-judges` is not on the path."""

import sys

from llm_judges.cli import main

sys.exit(main())
