"""`python -m berth_agent`."""

import sys

from berth_agent.cli import main

sys.exit(main())
