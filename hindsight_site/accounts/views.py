"""Pages of a person's own: signing up, the account, which team they work in, and in what colours."""

from __future__ import annotations

from typing import Any, cast

from allauth.account.adapter import get_adapter
from allauth.account.views import SignupView
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_POST

from hindsight_site.accounts import invitations, people
from hindsight_site.accounts.client_views import own_clients
from hindsight_site.accounts.enums import MailKind, Theme
from hindsight_site.accounts.forms import PersonForm
from hindsight_site.accounts.models import Membership, User
from hindsight_site.accounts.pages import SESSION_KEY, person_page
from hindsight_site.accounts.tenancy import enter_person


class SignUpView(SignupView):
    """Sign up, with a first team or into the team of the invitation that led here."""

    def get_initial(self) -> dict[str, Any]:
        initial = super().get_initial()
        if found := invitations.of_session(self.request.session):
            if found.was_mailed:  # to this address, so opening it confirms the address
                get_adapter().stash_verified_email(self.request, found.invitation.email)
            initial["invited"] = found.invitation.email
            self.extra_context = {"invited_to": found.team}
        return initial


sign_up = SignUpView.as_view()


@require_http_methods(["GET", "HEAD", "POST"])
@person_page
def account(request: Any) -> HttpResponse:
    """Name, time zone and colours; the ways to password, address and second factor."""
    form = PersonForm(request.POST) if request.method == "POST" else PersonForm.of(request.user)
    if request.method == "POST" and form.is_valid():
        people.change_person(person=request.user, **form.cleaned_data)
        messages.success(request, "Saved.")
        return redirect("account")
    mails = [(kind, kind not in request.user.mails_off) for kind in MailKind]
    return render(request, "accounts/account.html", {"form": form, "clients": own_clients(request), "mails": mails})


@require_POST
@login_required
def switch_team(request: HttpRequest) -> HttpResponse:
    """Work in another of one's teams from now on. 404 for a team one is not in."""
    enter_person(cast(User, request.user))
    mine = Membership.objects.filter(user=cast(User, request.user), team__suspended_at=None)
    chosen = request.POST.get("team", "")
    if chosen not in {str(team_id) for team_id in mine.values_list("team_id", flat=True)}:
        raise Http404
    request.session[SESSION_KEY] = chosen
    return redirect("overview")


@require_POST
@login_required
def set_theme(request: HttpRequest) -> HttpResponse:
    """Keep a person's choice of colours."""
    chosen = request.POST.get("theme", "")
    if chosen in Theme.values:
        person = cast(User, request.user)
        person.theme = chosen
        person.save(update_fields=["theme"])
    return redirect_back(request)


def redirect_back(request: HttpRequest) -> HttpResponseRedirect:
    """Go where the form says, when that is a page of this site; else to the overview."""
    target = request.POST.get("next", "")
    ours = url_has_allowed_host_and_scheme(target, allowed_hosts=None) and target.startswith("/")
    return HttpResponseRedirect(target) if ours else redirect("overview")
