"""Addresses of people, of their teams, and of connecting agents.

allauth's views are listed one by one: what is not here does not exist.
"""

from allauth.account import views as account_views
from allauth.mfa.base import views as mfa_views
from allauth.mfa.recovery_codes import views as recovery_views
from allauth.mfa.totp import views as totp_views
from allauth.mfa.webauthn import views as passkey_views
from django.db.transaction import non_atomic_requests
from django.urls import path, re_path
from django.views.decorators.http import require_POST

from hindsight_site import connect
from hindsight_site.accounts import (
    audit_views,
    client_views,
    invitation_views,
    job_views,
    mail_views,
    passkeys,
    team_views,
    token_views,
    views,
    webhook_views,
)
from hindsight_site.accounts.pages import person_page

# Outside a transaction, so that a failed attempt counts at once and nobody waits for somebody else's.
log_in = non_atomic_requests(account_views.login)
log_out = require_POST(account_views.logout)

entrance = [
    path("login/", log_in, name="login"),
    path("login/", log_in, name="account_login"),
    path("login/second/", non_atomic_requests(mfa_views.authenticate), name="mfa_authenticate"),
    path("login/passkey/", non_atomic_requests(passkey_views.login_webauthn), name="mfa_login_webauthn"),
    path("logout/", log_out, name="logout"),
    path("logout/", log_out, name="account_logout"),
    path("mails/off/<str:token>/", mail_views.unsubscribe, name="unsubscribe"),
    path("sign-up/", views.sign_up, name="account_signup"),
    path("account/inactive/", account_views.account_inactive, name="account_inactive"),
    path("account/confirm/", account_views.email_verification_sent, name="account_email_verification_sent"),
    path("account/confirm/<str:key>/", account_views.confirm_email, name="account_confirm_email"),
    path("password/reset/", account_views.password_reset, name="account_reset_password"),
    path("password/reset/sent/", account_views.password_reset_done, name="account_reset_password_done"),
    # allauth builds the link from one with UID-KEY in it, so the hyphen must be.
    re_path(
        r"^password/reset/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$",
        account_views.password_reset_from_key,
        name="account_reset_password_from_key",
    ),
    path(
        "password/reset/done/",
        account_views.password_reset_from_key_done,
        name="account_reset_password_from_key_done",
    ),
    path("confirm/", account_views.reauthenticate, name="account_reauthenticate"),
    path("confirm/code/", mfa_views.reauthenticate, name="mfa_reauthenticate"),
    path("confirm/passkey/", passkeys.reauthenticate, name="mfa_reauthenticate_webauthn"),
]

own = [
    path("account/", views.account, name="account"),
    path(
        "account/clients/<uuid:team_id>/<uuid:client_id>/disconnect/",
        client_views.disconnect_own,
        name="disconnect_own_client",
    ),
    path("account/theme/", views.set_theme, name="set_theme"),
    path("account/mails/", mail_views.choose_mails, name="choose_mails"),
    path("account/email/", person_page(account_views.email), name="account_email"),
    path("account/password/", person_page(account_views.password_change), name="account_change_password"),
    path("account/password/set/", person_page(account_views.password_set), name="account_set_password"),
    path("account/security/", person_page(mfa_views.index), name="mfa_index"),
    path("account/security/app/", person_page(totp_views.activate_totp), name="mfa_activate_totp"),
    path("account/security/app/off/", person_page(totp_views.deactivate_totp), name="mfa_deactivate_totp"),
    path("account/security/keys/", person_page(passkey_views.list_webauthn), name="mfa_list_webauthn"),
    path("account/security/keys/add/", person_page(passkey_views.add_webauthn), name="mfa_add_webauthn"),
    path("account/security/keys/<int:pk>/", person_page(passkey_views.edit_webauthn), name="mfa_edit_webauthn"),
    path(
        "account/security/keys/<int:pk>/remove/",
        person_page(passkey_views.remove_webauthn),
        name="mfa_remove_webauthn",
    ),
    path(
        "account/security/codes/",
        person_page(recovery_views.view_recovery_codes),
        name="mfa_view_recovery_codes",
    ),
    path(
        "account/security/codes/new/",
        person_page(recovery_views.generate_recovery_codes),
        name="mfa_generate_recovery_codes",
    ),
    path(
        "account/security/codes/download/",
        person_page(recovery_views.download_recovery_codes),
        name="mfa_download_recovery_codes",
    ),
]

team = [
    path("team/", team_views.people_page, name="team"),
    path("team/<uuid:team_id>/<slug:page>/", mail_views.follow, name="mail_link"),
    path("team/switch/", views.switch_team, name="switch_team"),
    path("team/new/", team_views.new_team, name="new_team"),
    path("team/leave/", team_views.leave, name="leave_team"),
    path("team/members/<uuid:membership_id>/role/", team_views.change_role, name="change_role"),
    path("team/members/<uuid:membership_id>/remove/", team_views.remove_member, name="remove_member"),
    path("team/settings/", team_views.settings_page, name="team_settings"),
    path("team/transfer/", team_views.transfer, name="transfer_team"),
    path("team/delete/", team_views.delete_team, name="delete_team"),
    path("team/deleted/<uuid:team_id>/<uuid:deletion_id>/", team_views.deletion_page, name="team_deletion"),
    path("team/tokens/", token_views.tokens_page, name="team_tokens"),
    path("team/tokens/new/", token_views.create, name="create_team_token"),
    path(
        "team/clients/<uuid:team_id>/<uuid:client_id>/disconnect/",
        client_views.disconnect_any,
        name="disconnect_client",
    ),
    path("team/tokens/<uuid:team_token_id>/rotate/", token_views.rotate, name="rotate_team_token"),
    path("team/tokens/<uuid:team_token_id>/revoke/", token_views.revoke, name="revoke_team_token"),
    path("team/invitations/", invitation_views.invite, name="invite"),
    path("team/invitations/<uuid:invitation_id>/resend/", invitation_views.resend, name="resend_invitation"),
    path("team/invitations/<uuid:invitation_id>/revoke/", invitation_views.revoke, name="revoke_invitation"),
    path("invitations/<str:token>/", invitation_views.open_invitation, name="invitation"),
]

agents = [
    path("connect/", connect.connect, name="connect"),
    path("connect/agents/", connect.add_agent, name="add_agent"),
    path("connect/<slug:slug>/", connect.connect_agent, name="connect_agent"),
    path("connect/<slug:slug>/tokens/", connect.add_token, name="add_token"),
    path("connect/<slug:slug>/tokens/<uuid:token_id>/revoke/", connect.revoke_token, name="revoke_token"),
]

audit = [
    path("audit/", audit_views.audit_page, name="audit"),
    path("audit/download/", audit_views.audit_download, name="audit_download"),
]

webhooks = [
    path("webhooks/", webhook_views.webhooks_page, name="webhooks"),
    path("webhooks/<uuid:webhook_id>/", webhook_views.webhook_page, name="webhook"),
    path("webhooks/<uuid:webhook_id>/act/", webhook_views.webhook_act, name="webhook_act"),
    path("webhooks/messages/<uuid:delivery_id>/again/", webhook_views.webhook_redeliver, name="webhook_redeliver"),
]

jobs = [
    path("jobs/", job_views.job_list, name="jobs"),
    path("jobs/<uuid:job_id>/", job_views.job_detail, name="job"),
    path("jobs/<uuid:job_id>/cancel/", job_views.job_cancel, name="job_cancel"),
]

urlpatterns = [*webhooks, *jobs, *entrance, *own, *team, *agents, *audit]
