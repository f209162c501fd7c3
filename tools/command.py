"""The command `weft` of this source, as a process is started with it: its name is what users type."""

import sys

START = "import sys; sys.argv[0] = 'weft'; from weft.surfaces.command import main; main()"
WEFT = [sys.executable, "-c", START]
