"""Start the command `waylore`, or name the extra that it needs.

`waylore --version` is answered here, before the command line and its dependencies are imported.
"""

import sys

import waylore


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"waylore {waylore.__version__}\n")
        return
    try:
        from waylore.surfaces.cli.app import app  # noqa: PLC0415
    except ImportError as error:
        sys.exit(f"the command line needs {error.name}: pip install 'waylore[cli]'")
    except KeyboardInterrupt:
        sys.exit(130)
    app()


if __name__ == "__main__":
    main()
