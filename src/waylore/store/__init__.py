"""The Store protocol and its engines, SQLite and PostgreSQL."""
