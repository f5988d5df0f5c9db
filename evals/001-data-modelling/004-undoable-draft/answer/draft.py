"""A document that can be edited by path, with undo and redo."""

from copy import deepcopy
from typing import Any

Content = dict[str, Any]


class DraftError(Exception):
    """An edit that can not be made."""


class Draft:
    """Every version is a copy of its own that is never changed once it is kept."""

    def __init__(self, content: Content) -> None:
        self._current: Content = deepcopy(content)
        self._past: list[Content] = []
        self._future: list[Content] = []

    def content(self) -> Content:
        """The document as it is now, for the caller to keep."""
        return deepcopy(self._current)

    def put(self, path: str, value: Any) -> None:
        """Sets a value, with the dicts on the way to it."""
        *parents, last = _keys(path)
        edited = self.content()
        node: Any = edited
        for key in parents:
            node = node.setdefault(key, {})
            if not isinstance(node, dict):
                raise DraftError(f"{path!r} leads through {key!r}, which is not a dict")
        node[last] = deepcopy(value)
        self._keep(edited)

    def remove(self, path: str) -> None:
        """Deletes the last key of a path."""
        *parents, last = _keys(path)
        edited = self.content()
        node: Any = edited
        for key in parents:
            node = node.get(key) if isinstance(node, dict) else None
        if not isinstance(node, dict) or last not in node:
            raise DraftError(f"{path!r} does not exist")
        del node[last]
        self._keep(edited)

    def undo(self) -> bool:
        """Takes the latest edit back, if there is one."""
        if not self._past:
            return False
        self._future.append(self._current)
        self._current = self._past.pop()
        return True

    def redo(self) -> bool:
        """Makes the edit again that was taken back last, if there is one."""
        if not self._future:
            return False
        self._past.append(self._current)
        self._current = self._future.pop()
        return True

    def _keep(self, edited: Content) -> None:
        self._past.append(self._current)
        self._current = edited
        self._future.clear()


def _keys(path: str) -> list[str]:
    keys = path.split(".")
    if not all(keys):
        raise DraftError(f"{path!r} has an empty key")
    return keys
