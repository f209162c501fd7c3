"""Parts that readers share: fields before a text, titles, logs, keys of items, and writing blocks."""
