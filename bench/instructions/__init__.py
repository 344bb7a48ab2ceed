"""Instructions a message, counted and compared with those recorded."""
