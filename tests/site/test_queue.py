"""The queue's table: what came in first is taken first."""

from __future__ import annotations

import pytest
from django_q.brokers import get_broker
from django_q.models import OrmQ

pytestmark = pytest.mark.django_db


def test_what_came_in_first_is_taken_first_wherever_its_row_lies() -> None:
    broker = get_broker()
    first, second = broker.enqueue("first"), broker.enqueue("second")
    OrmQ.objects.filter(pk=first).update(payload="the first")  # its row now lies behind the other one in the table
    assert [broker.dequeue(), broker.dequeue()] == [[(first, "the first")], [(second, "second")]]
    broker.acknowledge(first)
    assert list(OrmQ.objects.values_list("pk", flat=True)) == [second]
    assert (broker.queue_size(), broker.lock_size()) == (0, 1)
