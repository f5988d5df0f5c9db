"""What a user can mend."""


class MendableError(Exception):
    """Its message is a sentence or two: what is wrong, and what to do."""

    wrong_use = True
    """Whether it lies in what was asked for; if not, in the machine, the network or the files."""
