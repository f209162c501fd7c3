"""Adds a folder, tells what became of it and what memory it took: `python -m faults.hostile FILE FOLDER`."""

import json
import resource
import sys
from pathlib import Path

from faults.folders import opened


def main(path: str, folder: str) -> None:
    """Print documents, refusals and the most memory that was taken, in bytes."""
    with opened(Path(path)) as waylore:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        added = waylore.add_files(folder, root=folder)
        uris = [document.uri for document in waylore.documents()]
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    refusals = {refusal.uri: refusal.reason for refusal in added.refusals}
    print(json.dumps({"documents": uris, "refusals": refusals, "memory": grown * 1024}))


if __name__ == "__main__":
    main(*sys.argv[1:])
