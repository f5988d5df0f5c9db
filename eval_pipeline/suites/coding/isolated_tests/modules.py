"""Modules that stand for an answer's: what tests import from them works over there."""

import collections
import enum
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

from eval_pipeline.suites.coding.isolated_tests import values as plain
from eval_pipeline.suites.coding.isolated_tests.proxies import (
    HANDLE,
    Far,
    FarFunction,
    FarObject,
    FarType,
    awaiting,
    make_class,
    make_object,
)
from eval_pipeline.suites.coding.isolated_tests.values import encode_error, known_class, known_place
from eval_pipeline.suites.coding.isolated_tests.wire import Nonsense

_CAN_NOT = (
    "A {} can not be handed to the process of the answer: only plain data and what came from "
    'there can. Tests that need it have to run beside the answer: verdict = "tamper_evident".'
)
_ENUMS: dict[str, tuple[Any, type | None]] = {
    "StrEnum": (enum.StrEnum, None),
    "IntFlag": (enum.IntFlag, None),
    "Flag": (enum.Flag, None),
    "IntEnum": (enum.IntEnum, None),
    "str": (enum.Enum, str),
    "int": (enum.Enum, int),
    "Enum": (enum.Enum, None),
}


class FarError:
    """What likenesses of an answer's own exceptions have beside their parents' things."""

    __evals_text__: str | None = None

    def __str__(self) -> str:
        return super().__str__() if self.__evals_text__ is None else self.__evals_text__


class Modules:
    """All likenesses by the names under which tests know them."""

    def __init__(self, far: Far, interface: Mapping[str, Sequence[str]]) -> None:
        self._far, self._interface = far, interface
        far.codec = self
        self._named: dict[tuple[str, str], Any] = {}
        self._told: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._classes: dict[int, FarType] = {}
        self._told_classes: dict[int, Mapping[str, Any]] = {}
        self._objects: dict[int, FarObject] = {}
        self._local: dict[type, list[str]] = {}

    def install(self) -> None:
        """Puts the modules where tests will import them from."""
        self._far.start()
        told = self._far.ask("describe", None)
        self._told = {
            (module, name): told[module][name]
            for module, names in self._interface.items()
            for name in names
        }
        for module, names in self._interface.items():
            self._install_module(module, names)

    def _install_module(self, module: str, names: Sequence[str]) -> None:
        made = types.ModuleType(module)
        for name in names:
            vars(made)[name] = self._likeness(module, name)
        sys.modules[module] = made
        parent, _, child = module.rpartition(".")
        while parent:
            package = sys.modules.setdefault(parent, types.ModuleType(parent))
            vars(package).setdefault("__path__", [])
            setattr(package, child, sys.modules[f"{parent}.{child}"])
            parent, _, child = parent.rpartition(".")

    def _likeness(self, module: str, name: str) -> Any:
        """The one likeness of a name; classes that are its parents come first."""
        if (module, name) not in self._named:
            self._named[module, name] = self._make(module, name, self._told[module, name])
        return self._named[module, name]

    def _make(self, module: str, name: str, words: Mapping[str, Any]) -> Any:
        match words.get("kind"):
            case "function":
                return FarFunction(
                    self._far, ["ref", module, name], asynchronous=bool(words["async"]), name=name
                )
            case "class" if name[:1].islower():
                # A class in the place of a function: what it makes was not agreed on.
                return FarFunction(self._far, ["ref", module, name], asynchronous=False, name=name)
            case "class":
                return make_class(self._far, words, self._parents(words), [module, name])
            case "exception":
                kind = self._error_class(str(words["name"]), words["above"])
                return self._keep_local(module, name, kind)
            case "enum":
                return self._keep_local(module, name, self._enum(words))
            case "namedtuple":
                defaults = self.decode(words["defaults"])
                fields = [str(field) for field in words["fields"]]
                values = [defaults[field] for field in fields if field in defaults]
                kind = _tuple_class(str(words["name"]), fields, values)
                return self._keep_local(module, name, kind)
            case "constant":
                return self.decode(words["value"])
        raise Nonsense(f"Nobody knows what {name} is.")

    def _keep_local(self, module: str, name: str, kind: type) -> type:
        self._local[kind] = [module, name]
        kind.__module__ = module
        return kind

    def _parents(self, words: Mapping[str, Any]) -> tuple[type, ...]:
        found: list[type] = []
        for module, name in words["parents"]:
            parent = self._likeness(module, name)
            if isinstance(parent, FarType) and not any(issubclass(one, parent) for one in found):
                found.append(parent)
        return tuple(found)

    def _error_class(self, name: str, words: Any) -> type[BaseException]:
        """A class of exceptions below the one that the words are about."""
        above = self._find_error(words)
        parents = (above,) if issubclass(above, FarError) else (FarError, above)
        return type(name, parents, {})

    def _enum(self, words: Mapping[str, Any]) -> type:
        base, plain_type = _ENUMS[words["base"]]
        members = {str(name): self.decode(value) for name, value in words["members"].items()}
        # Under such a name it would not be a member, but how members are made and compared.
        if special := [name for name in members if name.startswith("_") and name.endswith("_")]:
            raise Nonsense(f"{special[0]} can not be a member of an enumeration.")
        made: type = base(str(words["name"]), members, type=plain_type)
        return made

    def learn(self, classes: Sequence[Mapping[str, Any]]) -> None:
        """Keeps what is said of classes; likenesses of them are made when they are met."""
        self._told_classes |= {int(words["number"]): words for words in classes}

    def _class(self, number: int) -> FarType:
        if number not in self._classes:
            words = self._told_classes[number]
            kind = self._likeness(*words["place"]) if words["place"] else None
            if not isinstance(kind, FarType):
                kind = make_class(self._far, words, self._parents(words), None)
            self._classes[number] = kind
        return self._classes[number]

    def encode(self, value: Any, depth: int = 0) -> Any:
        """A value for the answer's process; TypeError if it can not go there."""
        return plain.encode(value, self._other, depth)

    def _other(self, value: Any, depth: int) -> Any:
        if isinstance(value, FarFunction):
            return value.__evals_target__
        if isinstance(value, FarType) and value.__evals_place__:
            return ["ref", *value.__evals_place__]
        if isinstance(value, FarObject | BaseException) and HANDLE in vars(value):
            return vars(value)[HANDLE]
        if isinstance(value, type):
            return self._type(value)
        if place := self._local.get(type(value)):
            return self._own(value, place, depth)
        if isinstance(value, BaseException):
            return ["exception", encode_error(value, self.encode, self._type)]
        parent = plain.as_parent(value)
        if parent is value:
            raise TypeError(_CAN_NOT.format(type(value).__name__))
        return self.encode(parent, depth)

    def _type(self, kind: type) -> list[Any]:
        if place := self._local.get(kind):
            return ["ref", *place]
        if known := known_place(kind):
            return ["error", *known]
        raise TypeError(_CAN_NOT.format(f"class such as {kind.__name__}"))

    def _own(self, value: Any, place: list[str], depth: int) -> Any:
        if isinstance(value, enum.Enum):
            return ["member", *place, value.name]
        if isinstance(value, tuple):
            return ["tuple_of", *place, *(self.encode(part, depth + 1) for part in value)]
        return ["exception", encode_error(value, self.encode, self._type)]

    def decode(self, data: Any, depth: int = 0) -> Any:
        """A value of the answer's process."""
        return plain.decode(data, self._read, depth)

    def _read(self, data: list[Any], depth: int) -> Any:
        match data:
            case ["object", int(number), int(class_number)]:
                if number not in self._objects:
                    kind = self._class(class_number)
                    self._objects[number] = make_object(kind, number, class_number)
                return self._objects[number]
            case ["function", int(number), bool(asynchronous)]:
                return FarFunction(
                    self._far, ["object", number], asynchronous=asynchronous, name="function"
                )
            case ["awaitable", int(number)]:
                return awaiting(self._far, number)
            case ["ref", str(module), str(name)]:
                return self._likeness(module, name)
            case ["exception", dict(words)]:
                return self.decode_error(words)
        return self._read_kind(data, depth)

    def _read_kind(self, data: list[Any], depth: int) -> Any:
        match data:
            case ["error", str(module), str(name)]:
                return known_class(module, name)
            case ["member", str(module), str(name), str(member)]:
                return self._likeness(module, name)[member]
            case ["tuple_of", str(module), str(name), *parts]:
                values = [self.decode(part, depth + 1) for part in parts]
                return self._likeness(module, name)._make(values)
            case ["namedtuple", str(name), list(fields), *parts]:
                made = _tuple_class(name, [str(field) for field in fields], ())
                return made._make([self.decode(part, depth + 1) for part in parts])
        raise Nonsense(f"Nobody knows what {str(data[0])[:50]!r} is.")

    def decode_error(self, data: Any) -> BaseException:
        """An exception of the answer's process, to be raised here as what it is."""
        error = plain.decode_error(data, self.decode, self._find_error)
        vars(error)[HANDLE] = ["object", int(data["number"])]
        return error

    def _find_error(self, data: Any) -> type[BaseException]:
        match data:
            case ["like", str(name), known]:
                return self._error_class(name, known)
            case ["error", str(module), str(name)]:
                return known_class(module, name)
            case ["ref", str(module), str(name)]:
                found = self._likeness(module, name)
                if isinstance(found, type) and issubclass(found, BaseException):
                    return found
        raise Nonsense("An exception is of no class that is known.")


def _tuple_class(name: str, fields: Sequence[str], defaults: Sequence[Any]) -> Any:
    make: Any = collections.namedtuple
    return make(name, fields, defaults=defaults)
