"""Add a folder and print the result and the memory used: `python -m faults.hostile FILE FOLDER`."""

import json
import resource
import sys
from pathlib import Path

from faults.folders import open_file


def main(path: str, folder: str) -> None:
    """Print the documents, the skipped files and the peak memory in bytes."""
    with open_file(Path(path)) as waylore:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        added = waylore.add_files(folder, root=folder)
        uris = [document.uri for document in waylore.documents()]
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    skipped = {file.uri: file.reason for file in added.skipped}
    print(json.dumps({"documents": uris, "skipped": skipped, "memory": grown * 1024}))


if __name__ == "__main__":
    main(*sys.argv[1:])
