"""`python -m berth_agent.step FOLDER`."""

import sys

from berth_agent.step.main import main

sys.exit(main(sys.argv[1:]))
