"""Carry stores over from the layout before packs. Each engine has its own module, which runs once."""
