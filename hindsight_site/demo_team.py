"""The team of a first run: a person to sign in as, and an agent with a token, ready to be used."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

from django.conf import settings
from django.db import transaction

from hindsight_site.accounts import actions, audit, credentials
from hindsight_site.accounts.enums import TeamRole, TokenScope
from hindsight_site.accounts.models import Agent, Membership, Team, User
from hindsight_site.accounts.permissions import DEFAULT_TOKEN_SCOPES, TOKEN_SCOPES
from hindsight_site.accounts.tenancy import enter_person, enter_team
from memories.scopes import add_agent

EMAIL = "demo@hindsight.local"
TEAM = "Demo"
AGENT = "demo-agent"

_BY = audit.system("demo team")
_READABLE = "abcdefghjkmnpqrstuvwxyz23456789"  # no l, i, o, 0, 1


@dataclass(frozen=True, slots=True)
class DemoTeam:
    """What to sign in with and what to give an agent. `password` is empty when it is not known here: once the
    person chose their own, and for a person who was there before this data folder."""

    email: str
    password: str
    agent: str
    token: str


@dataclass(frozen=True, slots=True)
class Kept:
    """What the data folder keeps so that each start can show the same. `password_hash` is as the database
    had it: while the two agree, the password need not be checked, which takes half a second."""

    team: str
    password: str
    password_hash: str
    token: str


def ensure_demo_team() -> DemoTeam:
    """Return the demo team's credentials; create what is missing of the team, the person and the agent.

    They are kept in `demo.json` in the data folder, readable by its owner only. When that file is lost or
    belongs to another database, another token is made; the password of a person who is there already is
    never touched, as somebody may be using it, and is then not known here.
    """
    path = settings.DATA_DIR / "demo.json"
    kept = _read(path)
    with transaction.atomic():
        user = User.objects.filter(email=EMAIL).first() or User.objects.create_user(EMAIL)
        team = _team_of(user)
        enter_team(team)
        if kept is not None and kept.team != str(team.pk):
            kept = None
        password = _password(user, kept)
        token = _token(team, user, kept)
    now = Kept(str(team.pk), password, user.password, token)
    if now != kept:
        _write(path, now)
    return DemoTeam(EMAIL, password, AGENT, token)


def kept_token() -> str:
    """The demo team's token as the data folder has it, or ""."""
    kept = _read(settings.DATA_DIR / "demo.json")
    return kept.token if kept else ""


def _team_of(user: User) -> Team:
    """The oldest team that the demo person owns."""
    enter_person(user)
    owned = Membership.objects.filter(user=user, role=TeamRole.OWNER).select_related("team")
    membership = owned.order_by("created_at").first()
    return membership.team if membership else actions.create_team(by=_BY, name=TEAM, owner=user)


def _password(user: User, kept: Kept | None) -> str:
    """The password that opens the account, made for a new one; or "" when only its owner knows it."""
    if kept is None and user.has_usable_password():
        return ""
    if kept is None:
        password = "-".join("".join(secrets.choice(_READABLE) for _ in range(4)) for _ in range(4))
        user.set_password(password)
        user.save(update_fields=["password"])
        return password
    if kept.password_hash == user.password or (kept.password and user.check_password(kept.password)):
        return kept.password
    return ""


def _token(team: Team, user: User, kept: Kept | None) -> str:
    """A token that is alive: the one kept, or a new one."""
    agent = Agent.objects.of(team).filter(slug=AGENT).first() or add_agent(team=team, by=_BY, slug=AGENT)
    try:
        return kept.token if kept and credentials.find(kept.token) else _new_token(team, user, agent)
    except credentials.BadCredential:
        return _new_token(team, user, agent)


def _new_token(team: Team, user: User, agent: Agent) -> str:
    _, secret = actions.create_token(
        team=team,
        by=_BY,
        name=AGENT,
        scopes=[*DEFAULT_TOKEN_SCOPES, TokenScope.REVIEW],
        allowed=TOKEN_SCOPES[TeamRole.OWNER],
        agent=agent,
        created_by=user,
    )
    return secret


def _read(path: Path) -> Kept | None:
    try:
        return Kept(**json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _write(path: Path, kept: Kept) -> None:
    draft = path.with_suffix(".new")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(asdict(kept), file)
    draft.replace(path)
