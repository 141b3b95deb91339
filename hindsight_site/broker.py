"""The queue's table, served in the order in which tasks came in."""

from __future__ import annotations

from typing import Any

from django_q.brokers.orm import ORM


class InOrder(ORM):
    """django-q2's broker takes any row that it finds first: when more comes in than is done, the newest go before
    the oldest, which then wait for as long as that lasts, and the sweeps among them."""

    @staticmethod
    def get_connection(list_key: str | None = None) -> Any:
        """The rows, a queryset that all of the broker's statements begin with."""
        return ORM.get_connection(list_key).order_by("pk")
