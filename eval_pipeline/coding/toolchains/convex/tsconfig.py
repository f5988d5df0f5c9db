"""What a project's own tsconfig.json may decide: how its code is meant, never how it is checked."""

import json
from collections.abc import Callable
from typing import Any, TypeGuard

OPTIONS: dict[str, Any] = {
    "target": "ESNext",
    "lib": ["ES2023", "DOM"],
    "module": "ESNext",
    "moduleResolution": "Bundler",
    "jsx": "react-jsx",
    "strict": True,
    "noEmit": True,
    "skipLibCheck": True,
    "isolatedModules": True,
    "allowJs": True,
    "allowSyntheticDefaultImports": True,
    "forceConsistentCasingInFileNames": True,
}
"""For a project that brings none, and for whatever one does not decide."""
_LEFT_TO_PROJECTS = (
    "lib",
    "jsx",
    "jsxImportSource",
    "paths",
    "types",
    "resolveJsonModule",
    "allowImportingTsExtensions",
)
_WITH_WEB = ("dom", "webworker")
_TYPES = "@types/"


def fair_tsconfig(
    text: str | None, is_installed: Callable[[str], bool], manifest: str | None = None
) -> str:
    """A project's configuration without what says nothing about its code.

    Types of packages that are not there are dropped, resolution is a bundler's, and a list of
    libraries has the web's. It can not loosen the check: that stays strict and leaves nothing out.
    Where it lists no types, those that the manifest asks for are seen, as before TypeScript 6.
    """
    options = {**OPTIONS, **_chosen(text)}
    listed = [name for name in options.pop("types", []) if is_installed(_package(name))]
    kept = listed or [name for name in _asked_for(manifest) if is_installed(name)]
    if kept:
        options["types"] = kept
    if not any(name.lower() in _WITH_WEB for name in options["lib"]):
        options["lib"] = [*options["lib"], "DOM"]
    config = {"compilerOptions": options, "include": ["./**/*"], "exclude": ["**/node_modules"]}
    return json.dumps(config, indent=2) + "\n"


def _chosen(text: str | None) -> dict[str, Any]:
    """What it may decide and does, in a form that makes sense; what is no JSON decides nothing."""
    try:
        said = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    options = said.get("compilerOptions") if isinstance(said, dict) else None
    if not isinstance(options, dict):
        return {}
    kept = {name: options[name] for name in _LEFT_TO_PROJECTS if name in options}
    for name in ("lib", "types"):
        listed = kept.get(name, [])
        if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
            del kept[name]
    return kept


def _asked_for(manifest: str | None) -> list[str]:
    """The packages of which a package.json asks for types: node for @types/node."""
    try:
        said = json.loads(manifest or "{}")
    except (ValueError, RecursionError):
        return []
    groups = (
        [said.get(name) for name in ("dependencies", "devDependencies")] if _is_object(said) else []
    )
    names = {name for group in groups if _is_object(group) for name in group}
    return sorted(name.removeprefix(_TYPES) for name in names if name.startswith(_TYPES))


def _is_object(said: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(said, dict)


def _package(name: str) -> str:
    """The package that an entry of `types` is in: vite for vite/client."""
    return "/".join(name.split("/")[: 2 if name.startswith("@") else 1])
