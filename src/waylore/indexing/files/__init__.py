"""Add files and folders: list them, choose a reader, write in batches, report progress."""
