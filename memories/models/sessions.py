"""The column of a session's id."""

from __future__ import annotations

from typing import Any

from django.db import models

from memories.safety.sessions import stored_session_id

# For the help texts of the API.
KEPT_AS = (
    "Kept as sent, unless it holds personal data or a secret (an e-mail address, say): then a keyed fingerprint "
    "(sid_…) is stored and answered in its place, the same for memories, traces and recalls, so that a session "
    "stays together. Either form may be sent."
)


class SessionIdField(models.CharField):
    """Stores and looks for `stored_session_id(…)`: no writer and no filter can forget to."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_length": 120, "blank": True, "default": "", **options})

    def deconstruct(self) -> tuple[str, str, Any, Any]:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.CharField", args, kwargs  # the column is a plain one: nothing to migrate

    def get_prep_value(self, value: Any) -> Any:
        prepared = super().get_prep_value(value)
        return stored_session_id(prepared) if isinstance(prepared, str) else prepared

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        """Whoever holds the row reads what is stored, and never answers with what is not."""
        value = self.get_prep_value(super().pre_save(model_instance, add))
        setattr(model_instance, self.attname, value)
        return value
