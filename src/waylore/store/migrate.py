"""Brings a database to the schema this Waylore speaks, one recorded migration after another.

It refuses a schema that is newer than itself. It does not know which database it works on: the store gives
it a way to run a statement, inside a transaction that the store has begun.
"""

from collections.abc import Callable, Sequence

from waylore.errors import SchemaOutdated


def migrate(
    migrations: Sequence[tuple[int, str, str]],
    *,
    applied: set[int],
    run: Callable[[str], None],
    record: Callable[[int, str], None],
) -> int:
    """Apply what is missing, in order; return how many were."""
    newest = max(number for number, _, _ in migrations)
    if applied and max(applied) > newest:
        raise SchemaOutdated(
            f"the store has schema {max(applied)}, this Waylore knows {newest}: upgrade Waylore to open it"
        )
    missing = [m for m in migrations if m[0] not in applied]
    for number, name, sql in missing:
        run(sql)
        record(number, name)
    return len(missing)
