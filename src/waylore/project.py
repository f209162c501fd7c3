"""Find the project: the folder whose `waylore.toml` applies to the working folder.

Settings are read from this file, and addresses of files are relative to its folder. The module does not read the file.
"""

from pathlib import Path

PROJECT = Path("waylore.toml")


def find_project_file() -> Path:
    """Return `waylore.toml` of the working folder or of the nearest parent up to a `.git` or the home folder."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / PROJECT).is_file():
            return PROJECT if folder == here else folder / PROJECT
        if (folder / ".git").exists() or folder == Path.home():
            break
    return PROJECT


def find_project_folder() -> Path | None:
    """Return the folder that holds `waylore.toml`, or None if there is no such file."""
    try:
        file = find_project_file().absolute()
    except FileNotFoundError:  # the working folder was removed
        return None
    return file.parent if file.is_file() else None
