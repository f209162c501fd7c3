"""The checks of `waylore doctor`."""
