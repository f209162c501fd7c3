"""Readers of markup: Markdown, reStructuredText, HTML, EPUB and org-mode."""
