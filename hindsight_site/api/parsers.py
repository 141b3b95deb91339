"""Reading a JSON body strictly: size, form and text are checked before any field is looked at."""

from __future__ import annotations

import json
import math
import unicodedata
from typing import Any

from django.conf import settings
from rest_framework.parsers import BaseParser

from hindsight_site.refusals import FieldError, Invalid, TooLarge

MAX_DEPTH = 40
MAX_DIGITS = 300  # of a whole number: more than 308 do not fit any float that it may be compared with


class StrictJSONParser(BaseParser):
    """JSON in UTF-8. Text comes out as NFC; NUL and lone surrogates are refused by field."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        # Escaped text takes up to three times its UTF-8 size; actions measure the text itself.
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        raw = stream.read(limit + 1)
        if len(raw) > limit:
            raise TooLarge(f"The body is over the limit of {limit:,} bytes.")
        return clean(load(raw))


def load(raw: bytes) -> Any:
    """Return the JSON value of a body, its text as it came. Raises `Invalid`."""
    try:
        return json.loads(raw.decode("utf-8"), parse_constant=_refuse_constant, parse_float=_finite, parse_int=_whole)
    except UnicodeDecodeError:
        raise Invalid("The body is not UTF-8.", code="malformed") from None
    except RecursionError:
        raise Invalid("The body is nested too deeply.", code="malformed") from None
    except ValueError as error:
        raise Invalid(f"The body is not JSON: {error}.", code="malformed") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _finite(digits: str) -> float:
    """Return the number. One like 1e999 would become infinite, which JSON and PostgreSQL cannot write."""
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:20]} is too large a number")
    return number


def _whole(digits: str) -> int:
    """Return the number. One beyond every float would break the comparisons that fields make."""
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"{digits[:20]}… is too large a number")
    return int(digits)


def clean(value: Any, path: str = "", depth: int = 0) -> Any:
    """Return `value` with every string in NFC.

    Raises `Invalid` naming the field that holds NUL or a lone surrogate, or is nested too deeply.
    """
    if depth > MAX_DEPTH:
        raise Invalid(f"{path}: nested deeper than {MAX_DEPTH} levels.", code="malformed")
    if isinstance(value, str):
        return clean_text(value, path)
    if isinstance(value, list):
        return [clean(item, f"{path}.{index}".lstrip("."), depth + 1) for index, item in enumerate(value)]
    if isinstance(value, dict):
        return {
            clean_text(key, path): clean(item, f"{path}.{key}".lstrip("."), depth + 1) for key, item in value.items()
        }
    return value


def clean_text(text: str, path: str) -> str:
    """Return `text` in NFC; refuse what PostgreSQL cannot store."""
    if "\x00" in text:
        _refuse(path, "holds a NUL character; remove it.", "nul_character")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        _refuse(path, "holds half of a surrogate pair; send whole characters.", "lone_surrogate")
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _refuse(path: str, message: str, code: str) -> None:
    field = path.encode("ascii", "replace").decode() or "body"
    raise Invalid(f"{field} {message}", errors=(FieldError(field, message, code),))
