"""Runs evaluated elsewhere: taken in over HTTP by token, and sent to where they are shown."""
