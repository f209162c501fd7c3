"""The command `waylore` of this source, as a process is started with it: its name is what users type."""

import sys

START = "import sys; sys.argv[0] = 'waylore'; from waylore.surfaces.cli.__main__ import main; main()"
WAYLORE = [sys.executable, "-c", START]
