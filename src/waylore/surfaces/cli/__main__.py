"""The command `waylore`: starts the command line, or says what it needs."""

import sys


def main() -> None:
    """What `waylore` runs."""
    try:
        from waylore.surfaces.cli.app import app  # noqa: PLC0415
    except ImportError as error:
        sys.exit(f"the command line needs {error.name}: pip install 'waylore[cli]'")
    except KeyboardInterrupt:
        sys.exit(130)
    app()


if __name__ == "__main__":
    main()
