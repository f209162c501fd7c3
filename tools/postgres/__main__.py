"""Run PostgreSQL servers until Ctrl-C and print their addresses.

python -m tools.postgres                        one server
python -m tools.postgres --textsearch --count 3
"""

import argparse
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress

from tools.postgres.builds import MissingRequirement, find_plain_build, find_textsearch_build
from tools.postgres.server import DURABLE_SETTINGS, ServerFailed, start_servers


def main(arguments: Sequence[str] | None = None) -> int:
    """Run servers and print their addresses."""
    parser = argparse.ArgumentParser(prog="python -m tools.postgres", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--textsearch", action="store_true", help="use the build with pg_textsearch")
    parser.add_argument("--count", type=int, default=1, help="number of servers, default: 1")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        build = find_textsearch_build() if options.textsearch else find_plain_build()
        servers = start_servers(build, options.count, settings=DURABLE_SETTINGS)
        with suppress(KeyboardInterrupt), servers as started:
            for server in started:
                print(server.url, flush=True)
            signal.pause()
    except (MissingRequirement, ServerFailed) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
