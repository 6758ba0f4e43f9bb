"""`python -m boa`: the same as the command `boa`."""

import sys

from boa.cli import main

sys.exit(main())
