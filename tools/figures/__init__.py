"""Measure how a source tree and its documentation read, and compare the figures with the limits of the project.

    python -m tools.figures src/waylore --tests tests --twins surfaces.wire
    python -m tools.figures src/waylore --twins surfaces.wire --list riddles
    python -m tools.figures src/waylore --twins surfaces.wire --check

It reads files and runs ruff. It imports nothing of the code that it measures. How each figure is defined:

- A *module* is a Python file. `__init__.py` does not count towards the size of a folder.
- A *function* is a `def` or `async def` at any depth, without `@overload` stubs. Its length is the number of
  lines from `def` to its end, without its docstring.
- A function is *named by a participle* if the first word of its name is a past participle (`embedded`, `found`)
  or an -ing form (`reading`). Dunder methods, properties, tests and predicates (`is_`, `has_`) do not count.
- A docstring is *without a verb* if its first word is not the base form of a verb from `words.VERBS`. D401
  misses those that begin with a noun. Properties do not count.
- A *repeated class name* is a public class name that more than one module defines. `--twins` names the module
  of JSON models whose classes repeat those of `types` on purpose.
- A *cycle* is a strongly connected group of more than one module. "All" counts every import, also imports under
  `TYPE_CHECKING` and inside functions. "At load" counts only those that run when the module is loaded.
- *Riddling phrases* are the matches of `words.RIDDLES` in docstrings and comments, or in the prose of a page.
  They are reported and not enforced: the list is a detector, so read each place and decide.
- *Comments* are counted without pragmas such as `noqa`.
- A function is *fully typed* if all its parameters and its return value are annotated.
"""
