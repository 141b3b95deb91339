"""Asking for an import, and its job: our own format by its header, everything else by its form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import TextChoices

from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.enums import ChunkRole, JobKind
from hindsight_site.accounts.jobs import actions as jobs
from hindsight_site.accounts.jobs import files
from hindsight_site.accounts.jobs.models import Job
from hindsight_site.accounts.jobs.running import Work
from hindsight_site.accounts.models import Agent, ApiToken, Team, User
from hindsight_site.refusals import FieldError, Invalid, NotFound, TooLarge
from memories import scopes
from reflection.importing import foreign, own
from reflection.importing.vouching import header_of


class ImportFormat(TextChoices):
    """What a file can be."""

    AUTO = "auto", "Find out"
    HINDSIGHT = "hindsight", "Our own export"
    MEM0 = "mem0", "mem0: get_all as JSON"
    LETTA = "letta", "Letta agent file (.af)"
    VECTORIZE = "vectorize", "vectorize Hindsight archive (.zip)"
    MCP = "mcp", "MCP memory (.jsonl)"


@transaction.atomic
def request_import(
    *,
    team: Team,
    by: Actor,
    data: Iterable[bytes],
    format: str = ImportFormat.AUTO,  # noqa: A002 - the API's word
    scope: str = "",
    agent: str = "",
    verified: bool = False,
    person: User | None = None,
    token: ApiToken | None = None,
) -> Job:
    """Store the upload, sealed, and queue its import into the scope (default: the team's, or the agent's own).

    `verified` is the operator's word, from the command line only, that the file is our own export; its
    signature is checked all the same. Raises `Invalid`, `NotFound` or `TooLarge`, and then stores nothing.
    """
    if format not in ImportFormat.values:
        message = f"must be one of: {', '.join(ImportFormat.values)}."
        raise Invalid(f"format {message}", errors=(FieldError("format", message),))
    holder = Agent.objects.of(team).filter(slug=agent).first() if agent else None
    if agent and holder is None:
        raise NotFound(f"There is no agent {agent}.", code="agent_not_found")
    if scope or holder is not None:
        scope = scopes.writable(team, holder, scope).slug
    arguments = {"format": str(format), "scope": scope, "agent": agent, "verified": verified}
    job = jobs.request(team=team, by=by, kind=JobKind.IMPORT, arguments=arguments, person=person, token=token)
    size = 0
    for number, chunk in enumerate(_evenly(data)):
        size += len(chunk)
        if size > settings.MAX_IMPORT_BYTES:
            raise TooLarge(f"The file is over the limit of {settings.MAX_IMPORT_BYTES:,} bytes.")
        files.put(job, ChunkRole.UPLOAD, number, chunk)
    if not size:
        raise Invalid("The file is empty.", errors=(FieldError("file", "is empty."),))
    return job


def run(work: Work) -> dict[str, Any]:
    """Read the file as what it is."""
    wanted = work.job.arguments["format"]
    beginning = next(files.read(work.job, ChunkRole.UPLOAD), b"") if wanted == ImportFormat.AUTO else b""
    if wanted == ImportFormat.HINDSIGHT or header_of(beginning.split(b"\n", 1)[0]):
        return own.run(work)
    return foreign.run(work)


def _evenly(data: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in chunks of one size."""
    rest = bytearray()
    for part in data:
        rest += part
        while len(rest) >= files.CHUNK:
            yield bytes(rest[: files.CHUNK])
            del rest[: files.CHUNK]
    if rest:
        yield bytes(rest)
