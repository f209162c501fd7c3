"""Load a folder in small units until killed: `python -m loading.driver SOURCE URL WRITERS`."""

import sys
from pathlib import Path

from loading.loads import load

if __name__ == "__main__":
    load(Path(sys.argv[1]), sys.argv[2], writers=int(sys.argv[3]))
