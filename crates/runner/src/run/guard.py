# Runs at the start of every Python of a check. Modules of Python itself and of installed packages come before files of the same name that
# an agent left in the workspace, so that it cannot replace what a check imports. Files that the suite gives to the workspace are not guarded.

import sys


def _install(root, expected):
    try:
        from importlib.machinery import PathFinder
    except ImportError:
        return
    import os

    own = os.path.dirname(os.path.abspath(__file__))
    trusted = [folder for folder in sys.path if folder and os.path.abspath(folder) != own]

    def is_expected(name):
        if name not in expected:
            return False
        found = PathFinder.find_spec(name)
        origin = found.origin if found is not None else None
        return origin is not None and os.path.relpath(os.path.abspath(origin), root) in expected[name]

    class Guard(object):
        """Finds modules in the folders that the interpreter had before any script ran."""

        @staticmethod
        def find_spec(name, path=None, target=None):
            if path is not None or "." in name:
                return None
            found = PathFinder.find_spec(name, trusted, target)
            # A folder without code is no module that anyone installed.
            if found is None or found.loader is None or is_expected(name):
                return None
            return found

    at = sys.meta_path.index(PathFinder) if PathFinder in sys.meta_path else len(sys.meta_path)
    sys.meta_path.insert(at, Guard)
    _run_next("sitecustomize", PathFinder, trusted)


def _run_next(name, finder, trusted):
    """Runs the settings of this name that would have been run without these."""
    import importlib.util

    found = finder.find_spec(name, trusted)
    if found is not None and found.loader is not None:
        module = importlib.util.module_from_spec(found)
        sys.modules[name] = module
        found.loader.exec_module(module)


