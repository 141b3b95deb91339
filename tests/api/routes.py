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
    """`scopes` of each method. `ours`: address or body names an object of the team; `private`: of one agent.

    `team_only`: methods that a token bound to an agent may not use, whatever its scopes. `person`: the token
    has to act for somebody.
    """

    scopes: dict[str, str | None]
    ours: bool = False
    private: bool = False
    team_only: tuple[str, ...] = ()
    person: bool = False
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
    "authorize": [Page(PERSON), Page(PERSON, "post")],
    "account": [Page(PERSON)],
    "disconnect_own_client": [Page(PERSON, "post", ours=True)],
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
    "team_tokens": [Page(CONNECT)],
    "create_team_token": [Page(CONNECT, "post")],
    "rotate_team_token": [Page(CONNECT, "post", ours=True)],
    "revoke_team_token": [Page(CONNECT, "post", ours=True)],
    "invite": [Page(MANAGE, "post")],
    "resend_invitation": [Page(MANAGE, "post", ours=True)],
    "revoke_invitation": [Page(MANAGE, "post", ours=True)],
    "connect": [Page(READ)],
    "add_agent": [Page(CONNECT, "post")],
    "connect_agent": [Page(READ, ours=True)],
    "add_token": [Page(CONNECT, "post", ours=True)],
    "revoke_token": [Page(CONNECT, "post", ours=True)],
    "disconnect_client": [Page(CONNECT, "post", ours=True)],
    "audit": [Page(READ_AUDIT)],
    "audit_download": [Page(READ_AUDIT)],
    "usage": [Page(READ)],
    "webhooks": [Page(MANAGE), Page(MANAGE, "post")],
    "webhook": [Page(MANAGE, ours=True)],
    "webhook_act": [Page(MANAGE, "post", ours=True)],
    "webhook_redeliver": [Page(MANAGE, "post", ours=True)],
    "jobs": [Page(READ)],
    "job": [Page(READ, ours=True)],
    "job_cancel": [Page(MANAGE, "post", ours=True)],
    "erase": [Page(MANAGE), Page(MANAGE, "post")],
    "export": [Page(MANAGE), Page(MANAGE, "post")],
    "export_file": [Page(MANAGE, ours=True)],
    "import": [Page(MANAGE), Page(MANAGE, "post")],
}
MEMORY_PAGES = {
    "reembed": [Page(MANAGE), Page(MANAGE, "post")],
    "consolidate": [Page(MANAGE), Page(MANAGE, "post")],
    "unsubscribe": [Page(OPEN)],
    "choose_mails": [Page(PERSON, "post")],
    "mail_link": [Page(PERSON, ours=True)],
    "playground": [Page(READ), Page(READ, "post")],
    "recalls": [Page(READ)],
    "recall": [Page(READ, ours=True)],
    "memories": [Page(READ)],
    "policy": [Page(READ), Page(MANAGE, "post")],
    "policy_restore": [Page(MANAGE, "post")],
    "sweeps": [Page(READ)],
    "memory": [Page(READ, ours=True)],
    "memory_edit": [Page(REVIEW, ours=True), Page(REVIEW, "post", ours=True)],
    "memory_forget": [Page(MANAGE, ours=True), Page(MANAGE, "post", ours=True)],
    "memory_rollback": [Page(REVIEW, "post", ours=True)],
    "memory_undo": [Page(REVIEW, "post", ours=True)],
    "memory_promote": [Page(REVIEW, "post", ours=True)],
    "memory_split": [Page(REVIEW, "post", ours=True)],
    "conflicts": [Page(READ)],
    "conflict_resolve": [Page(REVIEW, "post", ours=True)],
    "conflict_undo": [Page(REVIEW, "post", ours=True)],
    "quarantine": [Page(READ)],
    "quarantine_decide": [Page(REVIEW, "post", ours=True)],
    "quarantine_undo": [Page(REVIEW, "post", ours=True)],
    "memory_act": [Page(REVIEW, "post", ours=True)],
}
REFLECTION_PAGES = {
    "team_model": [Page(MANAGE), Page(MANAGE, "post")],
    "team_model_act": [Page(MANAGE, "post")],
    "traces": [Page(READ)],
    "trace_progress": [Page(READ)],
    "trace": [Page(READ, ours=True)],
    "trace_reflect": [Page(REVIEW, "post", ours=True)],
    "review": [Page(READ)],
    "review-open": [Page(MANAGE, "post")],
    "review-next": [Page(REVIEW, "post")],
    "review-item": [Page(READ, ours=True)],
    "review-decide": [Page(REVIEW, "post", ours=True)],
    "review-undo": [Page(REVIEW, "post", ours=True)],
    "review-batch": [Page(READ, ours=True)],
    "review-metrics": [Page(READ)],
    "review-metrics-table": [Page(READ)],
    "review-metrics-lines": [Page(READ)],
    "review-conflicts": [Page(READ)],
    "review-batch-act": [Page(REVIEW, "post", ours=True, form={"action": "bulk_action"})],
    "review-batch-undo": [Page(REVIEW, "post", ours=True)],
    "review-batch-export": [Page(READ, ours=True)],
}
PAGES = {**PEOPLE_PAGES, **TEAM_PAGES, **MEMORY_PAGES, **REFLECTION_PAGES}

# Without a name and without a login; each says for itself who is calling.
OPEN_ADDRESSES = {
    "api/v1/schema",
    "api/v1/docs",
    "oauth/token",
    "token",
    "oauth/revoke",
    "oauth/register",
    ".well-known/jwks.json",
    ".well-known/oauth-authorization-server",
    ".well-known/oauth-protected-resource",
    ".well-known/oauth-protected-resource/mcp",
    ".well-known/oauth-protected-resource/api/v1",
    "mcp",
    "healthz",
    "readyz",
    "metrics",
}

TEAM_CALLS = {
    "auth/token": Call({"POST": ANY_TOKEN}),
    "me": Call({"GET": ANY_TOKEN}),
    "usage": Call({"GET": READ_TOKEN}),
    "stats": Call({"GET": READ_TOKEN}, team_only=("GET",)),
    "audit": Call({"GET": ADMIN_TOKEN}),
    "tokens": Call({"GET": ADMIN_TOKEN, "POST": ADMIN_TOKEN}),
    "tokens/<slug:prefix>": Call(
        {"GET": ADMIN_TOKEN, "PATCH": ADMIN_TOKEN, "DELETE": ADMIN_TOKEN}, ours=True, private=True
    ),
    "tokens/<slug:prefix>/rotate": Call({"POST": ADMIN_TOKEN}, ours=True, private=True),
    "agents": Call({"GET": READ_TOKEN, "POST": ADMIN_TOKEN}, team_only=("POST",)),
    "agents/<slug:slug>": Call({"GET": READ_TOKEN, "PATCH": ADMIN_TOKEN, "DELETE": ADMIN_TOKEN}, ours=True),
    "scopes": Call({"GET": READ_TOKEN, "POST": WRITE_TOKEN}),
    "scopes/<slug:slug>": Call(
        {"GET": READ_TOKEN, "PATCH": ADMIN_TOKEN, "DELETE": ADMIN_TOKEN},
        ours=True,
        private=True,
        team_only=("PATCH", "DELETE"),
    ),
    "scopes/<slug:slug>/grants": Call(
        {"GET": READ_TOKEN, "POST": ADMIN_TOKEN}, ours=True, private=True, body={"agent": "second"}, team_only=("POST",)
    ),
}
JOB_CALLS = {
    "jobs": Call({"GET": READ_TOKEN}),
    "jobs/<uuid:job_id>": Call({"GET": READ_TOKEN}, ours=True, private=True),
    "jobs/<uuid:job_id>/cancel": Call({"POST": ADMIN_TOKEN}, ours=True, private=True),
    "erasures": Call({"POST": ADMIN_TOKEN}, team_only=("POST",)),
    "erasures/preview": Call({"POST": ADMIN_TOKEN}, team_only=("POST",)),
    "exports": Call({"POST": ADMIN_TOKEN}, team_only=("POST",)),
    "exports/<uuid:job_id>/file": Call({"GET": ADMIN_TOKEN}, ours=True, team_only=("GET",)),
    "imports": Call({"POST": ADMIN_TOKEN}, team_only=("POST",)),
}
WEBHOOK_CALLS = {
    "webhooks": Call({"GET": ADMIN_TOKEN, "POST": ADMIN_TOKEN}, team_only=("GET", "POST")),
    "webhooks/callback-secret": Call({"GET": ADMIN_TOKEN}, team_only=("GET",)),
    "webhooks/<uuid:webhook_id>": Call(
        {"GET": ADMIN_TOKEN, "PATCH": ADMIN_TOKEN, "DELETE": ADMIN_TOKEN},
        ours=True,
        team_only=("GET", "PATCH", "DELETE"),
    ),
    "webhooks/<uuid:webhook_id>/secret": Call({"POST": ADMIN_TOKEN}, ours=True, team_only=("POST",)),
    "webhooks/<uuid:webhook_id>/ping": Call({"POST": ADMIN_TOKEN}, ours=True, team_only=("POST",)),
    "webhooks/<uuid:webhook_id>/deliveries": Call({"GET": ADMIN_TOKEN}, ours=True, team_only=("GET",)),
    "deliveries": Call({"GET": ADMIN_TOKEN}, team_only=("GET",)),
    "deliveries/<uuid:delivery_id>": Call({"GET": ADMIN_TOKEN}, ours=True, team_only=("GET",)),
    "deliveries/<uuid:delivery_id>/redeliver": Call({"POST": ADMIN_TOKEN}, ours=True, team_only=("POST",)),
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
    "memories/<uuid:memory_id>/promote": Call(
        {"POST": WRITE_TOKEN}, ours=True, private=True, body={"scope": "billing"}
    ),
    "memories/<uuid:memory_id>/split": Call({"POST": WRITE_TOKEN}, ours=True, private=True),
    "memories/<uuid:memory_id>/merges": Call({"GET": READ_TOKEN}, ours=True, private=True),
    "conflicts": Call({"GET": READ_TOKEN}),
    "conflicts/<uuid:conflict_id>/resolve": Call(
        {"POST": REVIEW_TOKEN}, ours=True, private=True, body={"decision": "keep_left"}
    ),
    "conflicts/<uuid:conflict_id>/undo": Call({"POST": REVIEW_TOKEN}, ours=True, private=True),
    "quarantine": Call({"GET": REVIEW_TOKEN}),
    "quarantine/<uuid:memory_id>/release": Call({"POST": REVIEW_TOKEN}, ours=True, private=True),
    "quarantine/<uuid:memory_id>/reject": Call({"POST": REVIEW_TOKEN}, ours=True, private=True),
    "quarantine/<uuid:memory_id>/undo": Call({"POST": REVIEW_TOKEN}, ours=True, private=True),
    "memories/<uuid:memory_id>/evidence": Call({"GET": READ_TOKEN}, ours=True, private=True),
    "memories/<uuid:memory_id>/revisions": Call({"GET": READ_TOKEN}, ours=True, private=True),
    "memories/<uuid:memory_id>/relations": Call({"GET": READ_TOKEN}, ours=True, private=True),
    "memories/<uuid:memory_id>/recalls": Call({"GET": READ_TOKEN}, ours=True, private=True),
    "sessions/<path:session_id>/context": Call({"GET": READ_TOKEN}),
    "policy": Call({"GET": READ_TOKEN, "PATCH": ADMIN_TOKEN}, team_only=("PATCH",)),
    "policy/preview": Call({"POST": ADMIN_TOKEN}, team_only=("POST",)),
    "policy/restore": Call({"POST": ADMIN_TOKEN}, team_only=("POST",)),
    "policy/versions": Call({"GET": READ_TOKEN}),
    "sweeps": Call({"GET": READ_TOKEN}),
    "recall": Call({"POST": READ_TOKEN}, body={"query": "what does yes mean?"}),
    "recalls": Call({"GET": READ_TOKEN}),
    "recalls/<uuid:recall_id>": Call({"GET": READ_TOKEN}, ours=True, private=True),
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
    "model": Call({"GET": ADMIN_TOKEN, "PUT": ADMIN_TOKEN, "DELETE": ADMIN_TOKEN}, team_only=("GET", "PUT", "DELETE")),
    "model/test": Call({"POST": ADMIN_TOKEN}, team_only=("POST",)),
    "reflections/progress": Call({"GET": READ_TOKEN}),
    "reflections/<uuid:reflection_id>": Call({"GET": READ_TOKEN}, ours=True, private=True),
    "reviews/batches": Call({"GET": REVIEW_TOKEN}, team_only=("GET",)),
    "reviews/batches/<uuid:batch_id>/items": Call({"GET": REVIEW_TOKEN}, ours=True, team_only=("GET",)),
    "reviews/items/<uuid:item_id>/verdict": Call(
        {"POST": REVIEW_TOKEN}, ours=True, team_only=("POST",), body={"decision": "approve"}, person=True
    ),
    "reviews/items/<uuid:item_id>/settle": Call(
        {"POST": REVIEW_TOKEN}, ours=True, team_only=("POST",), body={"decision": "approve"}, person=True
    ),
    "reviews/items/<uuid:item_id>/undo": Call({"POST": REVIEW_TOKEN}, ours=True, team_only=("POST",), person=True),
}
CALLS = {**TEAM_CALLS, **JOB_CALLS, **WEBHOOK_CALLS, **MEMORY_CALLS, **REFLECTION_CALLS}

# Django's admin: for staff only, whatever their role in a team. Models by app; the rest by address.
ADMIN_MODELS = {
    "auth": {"group"},
    "accounts": {
        "user", "team", "membership", "agent", "apitoken", "auditevent", "idempotencykey", "invitation",
        "teamdeletion", "job", "jobchunk", "webhook", "webhookdelivery"
    },
    "memories": {
        "memory", "scope", "scopegrant", "evidence", "revision", "relation", "recall", "recallhit", "feedback"
    },
    "reflection": {
        "trace", "step", "reflection", "reflectionresult", "reviewbatch", "reviewitem", "verdict", "teammodel",
        "reviewmail",
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
