"""The way in: text and facts become contributions, which are embedded and written. The only writer."""
