"""Makes a bare interpreter one that has the environment's packages, then runs something of ours.

Every path is an argument, so that they may be others where there is no sandbox to mount them in.
"""

import runpy
import sys
import types


def have_packages(environment: str) -> None:
    """As in a virtual environment, of which neither home nor interpreter need be known."""
    sys.prefix = sys.exec_prefix = environment
    import site  # noqa: PLC0415  (it looks at the prefix as it is now)

    site.main()


def have_package(name: str, folder: str) -> None:
    """A package of ours from a folder that has another name here."""
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        module = types.ModuleType(".".join(parts[:length]))
        module.__path__ = [folder] if length == len(parts) else []
        sys.modules[module.__name__] = module


def main() -> None:
    """Arguments: the environment, the folder of the oracle, a module of it or a file, and more."""
    environment, oracle, target = sys.argv[1:4]
    del sys.argv[1:4]
    have_packages(environment)
    if target.endswith(".py"):
        runpy.run_path(target, run_name="__main__")
    else:
        have_package("eval_pipeline.suites.coding.isolated_tests", oracle)
        runpy.run_module(
            f"eval_pipeline.suites.coding.isolated_tests.{target}", run_name="__main__"
        )


if __name__ == "__main__":
    main()
