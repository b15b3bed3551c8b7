"""Run the comparison: ``python -m benches --size small``."""

from __future__ import annotations

import sys

from benches.run import main

if __name__ == "__main__":
    sys.exit(main())
