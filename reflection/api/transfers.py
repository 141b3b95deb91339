"""Exports and imports over REST."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from hindsight_site.accounts.api.jobs import JobOut, accepted
from hindsight_site.accounts.enums import JobKind, TokenScope
from hindsight_site.accounts.jobs import queries
from hindsight_site.accounts.permissions import check_whole_team
from hindsight_site.api.idempotency import idempotent
from hindsight_site.api.views import TokenView, read_input
from reflection.api.uploads import BodyParser, FormParser, Upload
from reflection.exporting.running import request_export
from reflection.exporting.serving import CONTENT_TYPE, attachment
from reflection.importing.running import ImportFormat, request_import


class FileRenderer(JSONRenderer):
    """Lets a client ask for the file by its type; refusals are JSON all the same."""

    media_type = CONTENT_TYPE
    format = "jsonl"


class ImportOptions(serializers.Serializer):
    format = serializers.ChoiceField(choices=ImportFormat.choices, required=False, default=ImportFormat.AUTO)
    scope = serializers.CharField(
        max_length=80, required=False, default="", help_text="Where memories of other programs go; default: the team's."
    )
    agent = serializers.CharField(max_length=60, required=False, default="", help_text="Whose memories they are.")


class ExportsView(TokenView):
    token_scopes = {"POST": TokenScope.ADMIN}

    @extend_schema(operation_id="exports_request", request=None, responses={202: JobOut})
    @idempotent
    def post(self, request: Request) -> Response:
        """Write the whole team into one file: JSON Lines, without secrets, signed."""
        caller = self.caller(request)
        check_whole_team(caller.agent, "export or import the team")
        return accepted(request_export(team=caller.team, by=caller.actor, token=caller.token))


class ExportFileView(TokenView):
    token_scopes = {"GET": TokenScope.ADMIN}
    renderer_classes = (JSONRenderer, FileRenderer)

    @extend_schema(operation_id="exports_file", responses={(200, CONTENT_TYPE): OpenApiTypes.BINARY})
    def get(self, request: Request, job_id: uuid.UUID) -> StreamingHttpResponse:
        """The file of a finished export, while it is kept (a day)."""
        caller = self.caller(request)
        check_whole_team(caller.agent, "export or import the team")
        return attachment(queries.get(caller.team, None, job_id, kind=JobKind.EXPORT))


class ImportsView(TokenView):
    token_scopes = {"POST": TokenScope.ADMIN}
    parser_classes = (FormParser, BodyParser)
    upload: Upload | None = None

    @extend_schema(
        operation_id="imports_request",
        parameters=[ImportOptions],
        request={"application/octet-stream": OpenApiTypes.BINARY},
        responses={202: JobOut},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Read a file into the team: our own export, or what another memory keeps; as the body or a form's `file`."""
        caller = self.caller(request)
        check_whole_team(caller.agent, "export or import the team")
        wanted = read_input(ImportOptions, request.query_params.dict())
        data = request.data.chunks() if isinstance(request.data, Upload) else ()  # no body at all: an empty file
        job = request_import(team=caller.team, by=caller.actor, data=data, token=caller.token, **wanted)
        return accepted(job)

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        """Close the temporary file, whatever came of it."""
        if self.upload is not None:
            self.upload.file.close()
        return super().finalize_response(request, response, *args, **kwargs)
