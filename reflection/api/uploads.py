"""Reading a file that is sent: as the body itself, or as the field `file` of a form. Never held in memory whole."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from typing import IO, Any

from django.conf import settings
from rest_framework.parsers import BaseParser, MultiPartParser

from hindsight_site.refusals import FieldError, Invalid, TooLarge

READ = 64 * 1024
IN_MEMORY = 1024 * 1024  # bytes; more goes to a temporary file


class Upload(dict[str, Any]):
    """What is told of a sent file (size, SHA-256: what an Idempotency-Key is compared by), and the file."""

    def __init__(self, source: IO[bytes]) -> None:
        self.file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - the view closes it
        digest, size = hashlib.sha256(), 0
        while part := source.read(READ):
            size += len(part)
            if size > settings.MAX_IMPORT_BYTES:
                self.file.close()
                raise TooLarge(f"The file is over the limit of {settings.MAX_IMPORT_BYTES:,} bytes.")
            digest.update(part)
            self.file.write(part)
        super().__init__(size=size, sha256=digest.hexdigest())

    def chunks(self) -> Iterator[bytes]:
        """The file from its beginning."""
        self.file.seek(0)
        while part := self.file.read(READ):
            yield part


class BodyParser(BaseParser):
    """The body is the file."""

    media_type = "*/*"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Upload:
        return _kept(Upload(stream), parser_context)


class FormParser(MultiPartParser):
    """The file is the field `file` of a form."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Upload:
        sent = super().parse(stream, media_type, parser_context).files.get("file")
        if sent is None:
            message = "is needed: send the file in this field."
            raise Invalid(f"file {message}", errors=(FieldError("file", message, "required"),))
        return _kept(Upload(sent), parser_context)


def _kept(upload: Upload, parser_context: Any) -> Upload:
    """Leave the file with the view, which closes it when it has answered."""
    parser_context["view"].upload = upload
    return upload
