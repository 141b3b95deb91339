"""Packages that only some sites need. Imported by the settings, so it imports nothing of ours."""

from __future__ import annotations

from importlib.util import find_spec

from django.core.exceptions import ImproperlyConfigured


def need(setting: str, module: str, packages: str) -> None:
    """Refuse to start, in a line that says what to do, where `setting` asks for a `module` that is not installed."""
    try:
        is_there = find_spec(module) is not None
    except ModuleNotFoundError:  # nor is the package that it would be in
        is_there = False
    if not is_there:
        raise ImproperlyConfigured(
            f"{setting} is set, but what it needs is not installed: pip install {packages}, or unset {setting}."
        )
