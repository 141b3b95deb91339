"""The playground: ask as an agent would, and see why the answer is what it is."""

from __future__ import annotations

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from hindsight_site.accounts.pages import TeamRequest, team_page
from memories import playground

LONGEST_ADDRESS = 3000  # bytes; web servers refuse a request line of more than about 4,000


@require_http_methods(["GET", "HEAD", "POST"])
@team_page()
def playground_page(request: TeamRequest) -> HttpResponse:
    """Show the form and, for a question, its answer. What is sent is answered at an address that can be shared.

    A question too long for an address is answered in place.
    """
    given = request.POST if request.method == "POST" else request.GET
    if request.method == "POST":
        told = given.copy()
        told.pop("csrfmiddlewaretoken", None)
        for name in [name for name, values in told.lists() if not any(values)]:
            del told[name]
        address = f"{reverse('playground')}?{told.urlencode()}"
        if "q" in told and len(address) <= LONGEST_ADDRESS:
            return HttpResponseRedirect(f"{address}#answer", status=303)
    form, agent, readable = playground.bound_form(request.team, given)
    context = {
        "form": form,
        "agent": agent,
        "readable": readable,
        "shared": request.method != "POST",
        "tuned": form.is_tuned(),
    }
    if form.is_bound and form.is_valid():
        context |= playground.answer(request.team, agent, readable, form)
    return render(request, "memories/playground.html", context, status=422 if form.errors else 200)
