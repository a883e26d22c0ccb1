"""Model files: run them as a device does, and read what is in them."""
