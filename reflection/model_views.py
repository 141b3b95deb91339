"""The page of the team's own model."""

from __future__ import annotations

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from hindsight_site.accounts import permissions
from hindsight_site.accounts.audit import person
from hindsight_site.accounts.forms import add_refusal
from hindsight_site.accounts.pages import TeamRequest, team_page
from hindsight_site.refusals import Refused
from reflection import model_choice
from reflection.distill.errors import DistillError
from reflection.models import TeamModel


class ModelForm(forms.Form):
    """Where the model is and what it costs."""

    base_url = forms.CharField(
        label="Address",
        max_length=500,
        widget=forms.URLInput({"placeholder": "https://api.example.org/v1", "autocomplete": "off"}),
        help_text="Of an OpenAI-compatible endpoint, up to and without /chat/completions. It must be public.",
    )
    api_key = forms.CharField(
        label="Key",
        max_length=500,
        required=False,
        widget=forms.PasswordInput({"autocomplete": "off"}),
        help_text="Kept encrypted and never shown. Left empty, the kept one stays while the address does.",
    )
    model = forms.CharField(label="Model", max_length=120)
    model_strong = forms.CharField(
        label="Stronger model", max_length=120, required=False, help_text="For failed and long traces."
    )
    price_in = forms.FloatField(label="US dollars per million tokens in", min_value=0, required=False)
    price_out = forms.FloatField(label="US dollars per million tokens out", min_value=0, required=False)
    run_tokens = forms.IntegerField(
        label="Tokens of one reflection at most",
        min_value=0,
        required=False,
        help_text="Left empty: the site's own limit.",
    )

    @classmethod
    def of(cls, own: TeamModel | None) -> ModelForm:
        """The form as the team's model stands; empty without one."""
        return cls(initial={name: getattr(own, name) or "" for name in model_choice.FIELDS} if own else None)


@require_http_methods(["GET", "HEAD", "POST"])
@team_page(permissions.MANAGE)
def model_page(request: TeamRequest) -> HttpResponse:
    """What looks back at this team's traces, and a form for a model of its own."""
    own = model_choice.of(request.team)
    form = ModelForm(request.POST) if request.method == "POST" else ModelForm.of(own)
    if request.method == "POST" and form.is_valid() and _saved(request, form):
        messages.success(request, "Saved. The next reflection uses it; try it out below.")
        return redirect("team_model")
    context = {"form": form, "own": own, "site": settings.LLM_BASE_URL and settings.LLM_MODEL}
    return render(request, "reflection/model.html", context, status=422 if form.errors else 200)


def _saved(request: TeamRequest, form: ModelForm) -> bool:
    fields = {**form.cleaned_data, "api_key": form.cleaned_data["api_key"] or None}
    for name in ("price_in", "price_out", "run_tokens"):
        fields[name] = fields[name] or 0
    try:
        model_choice.set_model(team=request.team, by=person(request.user), **fields)
    except Refused as refusal:
        add_refusal(form, refusal)
        return False
    return True


@require_POST
@team_page(permissions.MANAGE)
def model_act(request: TeamRequest) -> HttpResponse:
    """Try the model out, or go back to the site's: the form's `act`."""
    if request.POST.get("act") == "drop":
        model_choice.drop_model(team=request.team, by=person(request.user))
        messages.success(request, "Your own model is used no more; its key is deleted.")
    elif model_choice.of(request.team):
        try:
            endpoint = model_choice.endpoint_of(request.team)
            problem = model_choice.try_out(endpoint) if endpoint else ""
        except DistillError as error:
            problem = str(error)
        if problem:
            messages.error(request, problem)
        else:
            messages.success(request, "It answered.")
    return redirect("team_model")
