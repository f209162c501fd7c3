"""Read Jupyter notebooks: Markdown cells as Markdown, code cells as code.

A notebook is JSON with a list of cells, so no library is needed. Outputs are not read.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from waylore.indexing.blocks import ReadError, Reading, Source
from waylore.indexing.encoding import decode_text, make_storable
from waylore.indexing.readers.markup.markdown import read_page

_FENCE = re.compile(r"`{3,}")


def read_notebook(source: Source) -> Iterator[Reading]:
    """Read a notebook as one document; its text consists of its cells, as Markdown."""
    text = decode_text(source.read_bytes(), source.limits)
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ReadError(f"it is not JSON: {error}"[:300]) from error
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise ReadError("it is not a notebook of version 4: it has no list of cells")
    cells = [shown for cell in notebook["cells"] if isinstance(cell, dict) and (shown := _format_cell(cell))]
    if not cells:
        raise ReadError("it has no text")
    yield from read_page(source, make_storable("\n\n".join(cells)))


def _format_cell(cell: dict[str, Any]) -> str:
    """Return the text of a cell: code is put between fences that are longer than any fence inside."""
    written = cell.get("source")
    parts = written if isinstance(written, list) else [written]
    text = "".join(part for part in parts if isinstance(part, str)).strip("\n")
    if cell.get("cell_type") != "code" or not text.strip():
        return text.strip()
    fence = "`" * max([3, *(len(found) + 1 for found in _FENCE.findall(text))])
    return f"{fence}\n{text}\n{fence}"
