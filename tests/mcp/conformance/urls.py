"""The site with the fixture in the place of Hindsight's own tools."""

from __future__ import annotations

from django.db.transaction import non_atomic_requests
from django.http import HttpRequest, HttpResponseBase
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from hindsight_site.mcp.endpoint import endpoint
from hindsight_site.urls import urlpatterns as ours
from tests.mcp.conformance.fixture import FIXTURE


@csrf_exempt
@non_atomic_requests
def fixture(request: HttpRequest) -> HttpResponseBase:
    return endpoint(request, FIXTURE)


urlpatterns = [path("mcp", fixture), *ours]
