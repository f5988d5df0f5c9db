"""A run as a log that `inspect view` opens: Inspect's format, written here without Inspect."""
