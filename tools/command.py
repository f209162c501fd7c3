"""The command that runs `waylore` from this source, under the name that users type. Tools use it."""

import sys

START_SCRIPT = "import sys; sys.argv[0] = 'waylore'; from waylore.surfaces.cli.__main__ import main; main()"
WAYLORE_COMMAND = [sys.executable, "-c", START_SCRIPT]
