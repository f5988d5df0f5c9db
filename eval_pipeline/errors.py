"""What a user can mend."""


class MendableError(Exception):
    """Its message is a sentence or two: what is wrong, and what to do."""
