"""Modules that stand for an answer's: what tests import from them works over there."""

import collections
import enum
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

from eval_pipeline.suites.coding.isolated_tests.proxies import (
    HANDLE,
    Far,
    FarFunction,
    FarObject,
    FarType,
    make_class,
)
from eval_pipeline.suites.coding.isolated_tests.values import ENUM_BASES, as_parent
from eval_pipeline.suites.coding.isolated_tests.wire import Frames, Nonsense

_CAN_NOT = (
    "A {} can not be handed to the process of the answer: only plain data and what came from "
    'there can. Tests that need it have to run beside the answer: verdict = "tamper_evident".'
)


class FarError:
    """What likenesses of an answer's own exceptions have beside their parents' things."""

    __evals_text__: str | None = None

    def __str__(self) -> str:
        return super().__str__() if self.__evals_text__ is None else self.__evals_text__


class Modules(Far):
    """All likenesses by the names under which tests know them."""

    def __init__(self, frames: Frames, interface: Mapping[str, Sequence[str]]) -> None:
        super().__init__(frames)
        self._interface = interface
        self._named: dict[tuple[str, str], Any] = {}
        self._told: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._classes: dict[int, FarType] = {}
        self._objects: dict[int, FarObject] = {}
        self._local: dict[type, list[str]] = {}

    def install(self) -> None:
        """Puts the modules where tests will import them from."""
        self.start()
        told = self.ask("describe", None)
        self._told = {
            (module, name): told[module][name]
            for module, names in self._interface.items()
            for name in names
        }
        for module, names in self._interface.items():
            self._install_module(module, names)

    def _install_module(self, module: str, names: Sequence[str]) -> None:
        made = types.ModuleType(module)
        vars(made).update({name: self.named(module, name) for name in names})
        sys.modules[module] = made
        parent, _, child = module.rpartition(".")
        while parent:
            package = sys.modules.setdefault(parent, types.ModuleType(parent))
            vars(package).setdefault("__path__", [])
            setattr(package, child, sys.modules[f"{parent}.{child}"])
            parent, _, child = parent.rpartition(".")

    def named(self, module: str, name: str) -> Any:
        """The one likeness of a name; classes that are its parents come first."""
        if (module, name) not in self._named:
            words = self._told[module, name]
            made = self._named[module, name] = self._make(module, name, words)
            if words["kind"] in ("exception", "enum", "namedtuple"):
                self._local[made] = [module, name]
                made.__module__ = module
        return self._named[module, name]

    def _make(self, module: str, name: str, words: Mapping[str, Any]) -> Any:
        target = ["ref", module, name]
        match words.get("kind"):
            case "function":
                return FarFunction(self, target, asynchronous=bool(words["async"]), name=name)
            case "class" if name[:1].islower():
                # A class in the place of a function: what it makes was not agreed on.
                return FarFunction(self, target, asynchronous=False, name=name)
            case "class":
                return make_class(self, words, self._parents(words), [module, name])
            case "exception":
                return self._decode_error_class(["like", str(words["name"]), words["above"]])
            case "enum":
                return self._enum(words)
            case "namedtuple":
                defaults = self.decode(words["defaults"])
                fields = [str(field) for field in words["fields"]]
                values = [defaults[field] for field in fields if field in defaults]
                return _tuple_class(str(words["name"]), fields, values)
            case "constant":
                return self.decode(words["value"])
        raise Nonsense(f"Nobody knows what {name} is.")

    def _parents(self, words: Mapping[str, Any]) -> tuple[type, ...]:
        found: list[type] = []
        for module, name in words["parents"]:
            parent = self.named(module, name)
            if isinstance(parent, FarType) and not any(issubclass(one, parent) for one in found):
                found.append(parent)
        return tuple(found)

    def _enum(self, words: Mapping[str, Any]) -> type:
        members = {str(name): self.decode(value) for name, value in words["members"].items()}
        # Under such a name it would not be a member, but how members are made and compared.
        if special := [name for name in members if name.startswith("_") and name.endswith("_")]:
            raise Nonsense(f"{special[0]} can not be a member of an enumeration.")
        base = ENUM_BASES[words["base"]]
        kind: Any = base if issubclass(base, enum.Enum) else enum.Enum
        made: type = kind(str(words["name"]), members, type=None if kind is base else base)
        return made

    def _class(self, number: int) -> FarType:
        if number not in self._classes:
            words = self._told_classes[number]
            kind = self.named(*words["place"]) if words["place"] else None
            if not isinstance(kind, FarType):
                kind = make_class(self, words, self._parents(words), None)
            self._classes[number] = kind
        return self._classes[number]

    def place(self, value: Any) -> list[str] | None:
        if isinstance(value, FarType):
            return value.__evals_place__
        return self._local.get(value) if isinstance(value, type) else None

    def _encode_known(self, value: Any, depth: int) -> Any:
        if isinstance(value, FarFunction):
            return value.__evals_target__
        if isinstance(value, FarObject | BaseException) and HANDLE in vars(value):
            return vars(value)[HANDLE]
        if isinstance(value, types.TracebackType):
            return None  # it stays here
        return super()._encode_known(value, depth)

    def _encode_own(self, value: Any, depth: int) -> Any:
        parent = as_parent(value)
        if parent is value:
            is_class = isinstance(value, type)
            kind = f"class such as {value.__name__}" if is_class else type(value).__name__
            raise TypeError(_CAN_NOT.format(kind))
        return self.encode(parent, depth)

    def _decode_own(self, data: list[Any], depth: int) -> Any:
        match data:
            case ["object", int(number), int(class_number)]:
                if number not in self._objects:
                    kind: Any = self._class(class_number)
                    made = self._objects[number] = object.__new__(kind)
                    vars(made)[HANDLE] = data
                return self._objects[number]
            case ["function", int(number), bool(asynchronous)]:
                target = ["object", number]
                return FarFunction(self, target, asynchronous=asynchronous, name="function")
            case ["awaitable", int(number)]:
                target = ["object", number]
                there = FarFunction(self, target, asynchronous=True, name="coroutine")
                return self.wait("await", there)
            case ["namedtuple", str(name), list(fields), *parts]:
                kind = _tuple_class(name, [str(field) for field in fields], ())
                return kind._make(self._decode_all(parts, depth))
        raise Nonsense(f"Nobody knows what {str(data[0])[:50]!r} is.")

    def decode_error(self, words: dict[str, Any]) -> BaseException:
        """An exception of the answer's process, to be raised here as what it is."""
        error = super().decode_error(words)
        vars(error)[HANDLE] = ["object", int(words["number"])]
        return error

    def _decode_error_class(self, data: Any) -> type[BaseException]:
        match data:
            case ["like", str(name), nearest]:
                above = self._decode_error_class(nearest)
                parents = (above,) if issubclass(above, FarError) else (FarError, above)
                return type(name, parents, {})
        return super()._decode_error_class(data)


def _tuple_class(name: str, fields: Sequence[str], defaults: Sequence[Any]) -> Any:
    make: Any = collections.namedtuple
    return make(name, fields, defaults=defaults)
