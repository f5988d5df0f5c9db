"""What a project's own tsconfig.json may decide: how its code is meant, never how it is checked."""

import json
from collections.abc import Callable
from typing import Any

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


def fair_tsconfig(text: str | None, is_installed: Callable[[str], bool]) -> str:
    """A project's configuration without what says nothing about its code.

    Types of packages that are not there are dropped, resolution is a bundler's, and a list of
    libraries has the web's. It can not loosen the check: that stays strict and leaves nothing out.
    """
    options = {**OPTIONS, **_chosen(text)}
    kept = [name for name in options.pop("types", []) if is_installed(_package(name))]
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


def _package(name: str) -> str:
    """The package that an entry of `types` is in: vite for vite/client."""
    return "/".join(name.split("/")[: 2 if name.startswith("@") else 1])
