"""Forms of people: logging in, signing up, and the settings of a team and of one's own account."""

from __future__ import annotations

from typing import Any

from allauth.account.forms import AddEmailForm
from allauth.account.forms import LoginForm as AllauthLoginForm
from allauth.account.forms import ResetPasswordForm as AllauthResetPasswordForm
from allauth.account.forms import SignupForm as AllauthSignupForm
from allauth.account.models import EmailAddress
from django import forms
from django.http import HttpRequest

from hindsight_site.accounts import invitations, people
from hindsight_site.accounts.audit import person
from hindsight_site.accounts.enums import Theme
from hindsight_site.accounts.models import Team, User
from hindsight_site.refusals import Refused


def add_refusal(form: forms.Form, refusal: Refused) -> None:
    """Show why a domain function said no: at the field that it names, else above the form."""
    named = {error.field for error in refusal.errors} & set(form.fields)
    form.add_error(next(iter(named), None), refusal.message)


class LoginForm(AllauthLoginForm):
    """E-mail address and password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["login"].label = "E-mail address"
        self.fields["login"].widget.attrs.update({"autofocus": True, "autocomplete": "username"})
        self.fields["password"].help_text = ""
        for field in self.fields.values():
            field.widget.attrs.pop("placeholder", None)

    def add_prefix(self, field_name: str) -> str:
        # The name that password managers and scripts know for this input.
        return "username" if field_name == "login" else super().add_prefix(field_name)


class SignUpForm(AllauthSignupForm):
    """A new person, with their first team, or into the team whose invitation they came by."""

    name = forms.CharField(
        label="Your name", max_length=150, required=False, widget=forms.TextInput({"autocomplete": "name"})
    )
    team = forms.CharField(
        label="Name of your team",
        max_length=people.MAX_NAME,
        widget=forms.TextInput({"autocomplete": "organization"}),
        help_text="Memories and traces belong to a team. It can be renamed.",
    )
    field_order = ("email", "password1", "name", "team")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].label = "E-mail address"
        for name in ("email", "password1"):
            self.fields[name].widget.attrs.pop("placeholder", None)
        self.fields["password1"].help_text = "At least 10 characters, and none of the common ones."
        if "invited" in self.initial:
            del self.fields["team"]
            self.fields["email"].initial = self.initial["invited"]

    def clean_team(self) -> str:
        try:
            return people.check_name(self.cleaned_data["team"])
        except Refused as refusal:
            raise forms.ValidationError(refusal.message) from refusal

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        invited = self.initial.get("invited")
        if invited and cleaned.get("email", "").lower() != invited:
            self.add_error("email", f"The invitation is for {invited}: sign up with that address.")
        return cleaned

    def custom_signup(self, request: HttpRequest, user: User) -> None:
        """Give the new person a name and a team, in the transaction that creates them."""
        user.first_name = " ".join(self.cleaned_data["name"].split())
        user.save(update_fields=["first_name"])
        token = request.session.pop(invitations.SESSION_KEY, "") if "invited" in self.initial else ""
        if token:
            found = invitations.find(token)
            invitations.accept(team=found.team, by=person(user), invitation=found.invitation, person=user)
        else:
            people.found_team(by=person(user), owner=user, name=self.cleaned_data["team"])


class ResetPasswordForm(AllauthResetPasswordForm):
    """The address to which the link for a new password is sent."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].label = "E-mail address"


class ChangeEmailForm(AddEmailForm):
    """Another address, which counts once it is confirmed."""

    def save(self, request: HttpRequest) -> EmailAddress:
        """Replace a change that waits for its confirmation, and mail the new address.

        allauth's own drops a present address that was never confirmed, and leaves the person without one.
        """
        waiting = EmailAddress.objects.filter(user=self.user, verified=False)
        waiting.exclude(email__iexact=self.user.email).delete()
        return EmailAddress.objects.add_email(request, self.user, self.cleaned_data["email"], confirm=True)


def _zones() -> list[tuple[str, str]]:
    return [(name, name.replace("_", " ")) for name in people.time_zones()]


class TeamForm(forms.Form):
    """Name and time zone of a team."""

    name = forms.CharField(label="Name", max_length=people.MAX_NAME)
    time_zone = forms.ChoiceField(
        label="Time zone", choices=_zones, help_text="Weeks of the review begin and end in it."
    )

    @classmethod
    def of(cls, team: Team) -> TeamForm:
        """The form as the team is now."""
        return cls(initial={"name": team.name, "time_zone": team.time_zone})


class PersonForm(forms.Form):
    """How a person is called, and how pages look to them."""

    name = forms.CharField(
        label="Your name", max_length=150, required=False, widget=forms.TextInput({"autocomplete": "name"})
    )
    time_zone = forms.ChoiceField(label="Time zone", choices=_zones, help_text="Times on pages are shown in it.")
    theme = forms.ChoiceField(label="Colours", choices=Theme.choices, required=False)

    @classmethod
    def of(cls, user: User) -> PersonForm:
        """The form as the person's account is now."""
        return cls(initial={"name": user.get_full_name(), "time_zone": user.time_zone, "theme": user.theme})
