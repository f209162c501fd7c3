"""Run the recipes for agents: install their packages, and let each agent remember, search and answer.

    python -m tools.recipes                        all of them
    python -m tools.recipes pydantic-ai
    python -m tools.recipes --folder FOLDER        keeps the environments there; build/recipes by default

No key is needed: a model that follows a script answers on loopback.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.recipes.run import RECIPES, ROOT, RecipeFailed, run_recipe


def main(arguments: Sequence[str] | None = None) -> int:
    """Run recipes and print their answers; return 1 if one fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(RECIPES)}; default: all")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "recipes", help="folder of the environments")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.names) - set(RECIPES)):
        parser.error(f"no recipe {', '.join(unknown)}")
    for name in options.names or RECIPES:
        with TemporaryDirectory() as folder:
            try:
                answers = run_recipe(name, options.folder, Path(folder))
            except RecipeFailed as error:
                print(error, file=sys.stderr)
                return 1
        print(f"{name}: {len(answers)} answers, the last: {' '.join(answers[-1].split())[:200]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
