"""The explorer: a page over a store. Its source is `explorer/`; `just explorer` builds it into the folder `page`."""
