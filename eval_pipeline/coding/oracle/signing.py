"""How what is reported is signed, the same way on both sides."""

from typing import Protocol


class Hash(Protocol):
    """A hash that has the key in it already."""

    def update(self, data: bytes, /) -> None: ...

    def hexdigest(self) -> str: ...


def signature(keyed: Hash, text: str) -> str:
    """Of a text, by a copy of the keyed hash that is used for nothing else."""
    keyed.update(text.encode())
    return keyed.hexdigest()
