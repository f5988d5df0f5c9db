"""What a user can mend."""

from collections.abc import Sequence
from typing import Self

NAMED_PROBLEMS = 5


class MendableError(Exception):
    """Its message is a sentence or two: what is wrong, and what to do."""

    wrong_use = True
    """Whether it lies in what was asked for; if not, in the machine, the network or the files."""


class RunError(MendableError):
    """What was asked for can not be done; the message says what to do instead."""


class NothingFailedError(RunError):
    """There is nothing to ask again, which is no trouble."""


class DatasetError(MendableError):
    """A data set that cannot be loaded: one sentence per problem, each on a line of its own."""

    @classmethod
    def of(cls, problems: Sequence[str], count: int) -> Self:
        """Return an error that lists these problems, and how many more of `count` there are."""
        more = count - len(problems)
        are = "is 1 more problem" if more == 1 else f"are {more} more problems"
        return cls("\n".join([*problems, f"There {are}."] if more else problems))
