"""`python -m esker.cli` is the command `esker`."""

import sys

from .main import main

sys.exit(main())
