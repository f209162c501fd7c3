"""Store what a conversation says without storing what is known already."""
