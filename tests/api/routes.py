"""The expectation of every route, a line each. A route that is not here fails `test_matrix`.

A page is known by its name, a call by its path below /api/v1/. To add one, add a line to its group.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hindsight_site.accounts.permissions import CONNECT, MANAGE, OWN, READ, READ_AUDIT, REVIEW

OPEN = "open"  # anybody, without signing in
PERSON = "person"  # whoever is signed in, about themselves

READ_TOKEN, WRITE_TOKEN, TRACE_TOKEN = "memory:read", "memory:write", "trace:write"
REFLECT_TOKEN, REVIEW_TOKEN, ADMIN_TOKEN = "reflect", "review", "admin"
ANY_TOKEN = None


@dataclass(frozen=True)
class Page:
    """`who` may, by which method. `ours`: the address names an object of the team."""

    who: str
    method: str = "get"
    ours: bool = False
    form: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """`scopes` of each method. `ours`: address or body names an object of the team; `private`: of one agent."""

    scopes: dict[str, str | None]
    ours: bool = False
    private: bool = False
    body: dict[str, object] = field(default_factory=dict)


PEOPLE_PAGES = {
    "login": [Page(OPEN)],
    "account_login": [Page(OPEN)],
    "mfa_authenticate": [Page(OPEN)],
    "mfa_login_webauthn": [Page(OPEN)],
    "logout": [Page(OPEN, "post")],
    "account_logout": [Page(OPEN, "post")],
    "account_signup": [Page(OPEN)],
    "account_inactive": [Page(OPEN)],
    "account_email_verification_sent": [Page(OPEN)],
    "account_confirm_email": [Page(OPEN)],
    "account_reset_password": [Page(OPEN)],
    "account_reset_password_done": [Page(OPEN)],
    "account_reset_password_from_key": [Page(OPEN)],
    "account_reset_password_from_key_done": [Page(OPEN)],
    "account_reauthenticate": [Page(PERSON)],
    "mfa_reauthenticate": [Page(PERSON)],
    "mfa_reauthenticate_webauthn": [Page(PERSON)],
    "account": [Page(PERSON)],
    "set_theme": [Page(PERSON, "post")],
    "account_email": [Page(PERSON)],
    "account_change_password": [Page(PERSON)],
    "account_set_password": [Page(PERSON)],
    "mfa_index": [Page(PERSON)],
    "mfa_activate_totp": [Page(PERSON)],
    "mfa_deactivate_totp": [Page(PERSON)],
    "mfa_list_webauthn": [Page(PERSON)],
    "mfa_add_webauthn": [Page(PERSON)],
    "mfa_edit_webauthn": [Page(PERSON)],
    "mfa_remove_webauthn": [Page(PERSON)],
    "mfa_view_recovery_codes": [Page(PERSON)],
    "mfa_generate_recovery_codes": [Page(PERSON)],
    "mfa_download_recovery_codes": [Page(PERSON)],
    "new_team": [Page(PERSON), Page(PERSON, "post")],
    "switch_team": [Page(PERSON, "post", ours=True, form={"team": "team_id"})],
    "team_deletion": [Page(PERSON, ours=True)],
    "invitation": [Page(OPEN)],
}
TEAM_PAGES = {
    "favicon": [Page(OPEN)],
    "overview": [Page(READ)],
    "team": [Page(READ)],
    "leave_team": [Page(READ, "post")],
    "change_role": [Page(MANAGE, "post", ours=True)],
    "remove_member": [Page(MANAGE, "post", ours=True)],
    "team_settings": [Page(MANAGE), Page(MANAGE, "post")],
    "transfer_team": [Page(OWN, "post")],
    "delete_team": [Page(OWN, "post")],
    "invite": [Page(MANAGE, "post")],
    "resend_invitation": [Page(MANAGE, "post", ours=True)],
    "revoke_invitation": [Page(MANAGE, "post", ours=True)],
    "connect": [Page(READ)],
    "add_agent": [Page(CONNECT, "post")],
    "connect_agent": [Page(READ, ours=True)],
    "add_token": [Page(CONNECT, "post", ours=True)],
    "revoke_token": [Page(CONNECT, "post", ours=True)],
    "audit": [Page(READ_AUDIT)],
    "audit_download": [Page(READ_AUDIT)],
    "usage": [Page(READ)],
}
MEMORY_PAGES = {
    "memories": [Page(READ)],
    "memory": [Page(READ, ours=True)],
    "memory_edit": [Page(REVIEW, ours=True), Page(REVIEW, "post", ours=True)],
    "memory_forget": [Page(MANAGE, ours=True), Page(MANAGE, "post", ours=True)],
    "memory_rollback": [Page(REVIEW, "post", ours=True)],
    "memory_undo": [Page(REVIEW, "post", ours=True)],
    "memory_act": [Page(REVIEW, "post", ours=True)],
}
REFLECTION_PAGES = {
    "traces": [Page(READ)],
    "trace": [Page(READ, ours=True)],
    "trace_reflect": [Page(REVIEW, "post", ours=True)],
    "review": [Page(READ)],
    "review-open": [Page(MANAGE, "post")],
    "review-next": [Page(REVIEW, "post")],
    "review-item": [Page(READ, ours=True)],
    "review-decide": [Page(REVIEW, "post", ours=True)],
    "review-undo": [Page(REVIEW, "post", ours=True)],
    "review-batch": [Page(READ, ours=True)],
}
PAGES = {**PEOPLE_PAGES, **TEAM_PAGES, **MEMORY_PAGES, **REFLECTION_PAGES}

# Without a name and without a login; each says for itself who is calling.
OPEN_ADDRESSES = {
    "api/v1/schema",
    "api/v1/docs",
    "oauth/token",
    "oauth/authorize",
    ".well-known/jwks.json",
    ".well-known/oauth-authorization-server",
    ".well-known/oauth-protected-resource",
    ".well-known/oauth-protected-resource/mcp",
    ".well-known/oauth-protected-resource/api/v1",
    "healthz",
    "readyz",
}

TEAM_CALLS = {
    "auth/token": Call({"POST": ANY_TOKEN}),
    "me": Call({"GET": ANY_TOKEN}),
    "usage": Call({"GET": READ_TOKEN}),
    "audit": Call({"GET": ADMIN_TOKEN}),
    "tokens": Call({"GET": ADMIN_TOKEN, "POST": ADMIN_TOKEN}),
    "tokens/<slug:prefix>": Call(
        {"GET": ADMIN_TOKEN, "PATCH": ADMIN_TOKEN, "DELETE": ADMIN_TOKEN}, ours=True, private=True
    ),
    "tokens/<slug:prefix>/rotate": Call({"POST": ADMIN_TOKEN}, ours=True, private=True),
    "agents": Call({"GET": READ_TOKEN, "POST": ADMIN_TOKEN}),
    "agents/<slug:slug>": Call({"GET": READ_TOKEN, "PATCH": ADMIN_TOKEN, "DELETE": ADMIN_TOKEN}, ours=True),
    "scopes": Call({"GET": READ_TOKEN, "POST": WRITE_TOKEN}),
    "scopes/<slug:slug>": Call(
        {"GET": READ_TOKEN, "PATCH": ADMIN_TOKEN, "DELETE": ADMIN_TOKEN}, ours=True, private=True
    ),
    "scopes/<slug:slug>/grants": Call(
        {"GET": READ_TOKEN, "POST": ADMIN_TOKEN}, ours=True, private=True, body={"agent": "second"}
    ),
}
MEMORY_CALLS = {
    "memories": Call({"GET": READ_TOKEN, "POST": WRITE_TOKEN}, body={"kind": "fact", "content": "Yes means yes."}),
    "memories/bulk": Call({"POST": WRITE_TOKEN}),
    "memories/<uuid:memory_id>": Call(
        {"GET": READ_TOKEN, "PATCH": WRITE_TOKEN, "DELETE": ADMIN_TOKEN}, ours=True, private=True
    ),
    "memories/<uuid:memory_id>/approve": Call({"POST": REVIEW_TOKEN}, ours=True, private=True),
    "memories/<uuid:memory_id>/demote": Call({"POST": REVIEW_TOKEN}, ours=True, private=True),
    "memories/<uuid:memory_id>/archive": Call({"POST": WRITE_TOKEN}, ours=True, private=True),
    "memories/<uuid:memory_id>/restore": Call({"POST": REVIEW_TOKEN}, ours=True, private=True),
    "memories/<uuid:memory_id>/pin": Call({"POST": WRITE_TOKEN}, ours=True, private=True),
    "memories/<uuid:memory_id>/forget": Call({"POST": ADMIN_TOKEN}, ours=True, private=True),
    "memories/<uuid:memory_id>/rollback": Call({"POST": WRITE_TOKEN}, ours=True, private=True),
    "memories/<uuid:memory_id>/evidence": Call({"GET": READ_TOKEN}, ours=True, private=True),
    "memories/<uuid:memory_id>/revisions": Call({"GET": READ_TOKEN}, ours=True, private=True),
    "memories/<uuid:memory_id>/relations": Call({"GET": READ_TOKEN}, ours=True, private=True),
    "memories/<uuid:memory_id>/recalls": Call({"GET": READ_TOKEN}, ours=True, private=True),
    "recall": Call({"POST": READ_TOKEN}, body={"query": "what does yes mean?"}),
    "feedback": Call({"POST": WRITE_TOKEN}, ours=True, private=True, body={"recall_id": "recall", "success": True}),
}
REFLECTION_CALLS = {
    "traces": Call({"GET": READ_TOKEN, "POST": TRACE_TOKEN}),
    "traces/<uuid:trace_id>": Call({"GET": READ_TOKEN, "DELETE": ADMIN_TOKEN}, ours=True, private=True),
    "traces/<uuid:trace_id>/steps": Call({"POST": TRACE_TOKEN}, ours=True, private=True),
    "traces/<uuid:trace_id>/finish": Call({"POST": TRACE_TOKEN}, ours=True, private=True),
    "reflections": Call(
        {"GET": READ_TOKEN, "POST": REFLECT_TOKEN}, ours=True, private=True, body={"trace": "trace_id"}
    ),
    "reflections/<uuid:reflection_id>": Call({"GET": READ_TOKEN}, ours=True, private=True),
}
CALLS = {**TEAM_CALLS, **MEMORY_CALLS, **REFLECTION_CALLS}

# Django's admin: for staff only, whatever their role in a team. Models by app; the rest by address.
ADMIN_MODELS = {
    "auth": {"group"},
    "accounts": {
        "user", "team", "membership", "agent", "apitoken", "auditevent", "idempotencykey", "invitation",
        "teamdeletion"
    },
    "memories": {
        "memory", "scope", "scopegrant", "evidence", "revision", "relation", "recall", "recallhit", "feedback"
    },
    "reflection": {
        "trace", "step", "reflection", "reflectionresult", "reviewbatch", "reviewitem", "verdict"
    },
    "django_q": {"schedule", "success", "failure", "ormq"},
    "account": {"emailaddress"},
    "mfa": {"authenticator"},
}  # fmt: skip
ADMIN_ADDRESSES = {
    "",
    "login/",
    "logout/",
    "password_change/",
    "password_change/done/",
    "autocomplete/",
    "jsi18n/",
    "work-in/",
}
