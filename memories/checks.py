"""What is wrong with the settings of the vector index, told at the start of commands, servers and workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.core.management.base import CommandError

from hindsight_site import addresses


@register
def check_vector_index(**_: Any) -> list[CheckMessage]:
    """The engine is one we know, its driver is installed, and it has an address that several processes can share."""
    name = settings.VECTOR_INDEX
    if name == "pgvector":
        return []
    from memories.search import engines  # loads much that not every command needs

    if name not in engines.DRIVERS:
        known = ", ".join(engines.NAMES)
        return [Error(f"VECTOR_INDEX is {name!r}.", hint=f"Set it to one of: {known}.", id="memories.E001")]
    found: list[CheckMessage] = []
    if not engines.has_driver(name):
        hint = f"python -m pip install '{engines.DRIVERS[name][1]}'  (the extra `{name}` of this project)"
        found.append(Error(f"VECTOR_INDEX={name} needs a driver that is not installed.", hint=hint, id="memories.E002"))
    return found + _address(name)


def refuse_wrong_settings() -> None:
    """Raise `CommandError` with what to do: for the commands that start without Django's other checks."""
    errors = [found for found in check_vector_index() if found.is_serious()]
    if errors:
        raise CommandError(" ".join(f"{found.msg} {found.hint}" for found in errors))


def _address(name: str) -> list[CheckMessage]:
    url, ca_file = settings.VECTOR_INDEX_URL, settings.VECTOR_INDEX_CA_FILE
    found: list[CheckMessage] = []
    if name != "chroma" and _is_in_process(name, url):
        hint = "For tests and trials. Set it to http://… or https://… of a server that all processes share."
        found.append(Warning("VECTOR_INDEX_URL is seen by one process only.", hint=hint, id="memories.W001"))
    elif wrong := addresses.flaw(url):
        hint = "Set it to http://host:port, or https://host:port for TLS."
        told = f"VECTOR_INDEX_URL is no address: {wrong}." if url else f"VECTOR_INDEX={name} needs VECTOR_INDEX_URL."
        found.append(Error(told, hint=hint, id="memories.E003"))
    if ca_file and not Path(ca_file).is_file():
        hint = "Name a PEM file, or unset it."
        found.append(Error("VECTOR_INDEX_CA_FILE is no file.", hint=hint, id="memories.E004"))
    if not settings.VECTOR_INDEX_COLLECTION.isalnum() or not settings.VECTOR_INDEX_COLLECTION[0].isalpha():
        hint = "Letters and digits only, a letter first."
        found.append(Error("VECTOR_INDEX_COLLECTION cannot begin a name.", hint=hint, id="memories.E005"))
    return found


def _is_in_process(name: str, url: str) -> bool:
    return url == ":memory:" if name == "qdrant" else url.endswith(".db") and "://" not in url
