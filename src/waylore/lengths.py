"""The longest texts that one call takes, in characters, for every surface.

Nothing can stop Python in a thread, so work is bounded before it begins: `engine.arguments` checks these numbers, and
the schemas of HTTP and of an agent's tools publish them. Longer texts are added as files.
"""

MAX_QUERY = 8_000
MAX_TEXT = 1_000_000  # also of all metadata of a document, and of all facts in a request
MAX_TITLE = 1_000  # also of a heading, a label, and each name in a fact
MAX_STATEMENT = 10_000  # of a fact
MAX_TOOL_FACTS = 100  # facts that a model may add in one call
MAX_PATH = 4_096  # also of an address and of an id; the limit of Linux
