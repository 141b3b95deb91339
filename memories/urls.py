"""Addresses of the pages of memories."""

from django.urls import path, re_path

from memories import judging_views, playground_views, policy_views, receipt_views, verbs, views

ONE = "memories/<uuid:memory_id>/"
UUID = "(?P<memory_id>[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})"
VERB = "|".join(verbs.VERBS)

urlpatterns = [
    path("usage/", views.usage_page, name="usage"),
    path("reembed/", views.reembed, name="reembed"),
    path("playground/", playground_views.playground_page, name="playground"),
    path("recalls/", receipt_views.recall_list, name="recalls"),
    path("recalls/<uuid:recall_id>/", receipt_views.recall_receipt, name="recall"),
    path("settings/policy/", policy_views.policy_page, name="policy"),
    path("settings/policy/restore/", policy_views.policy_restore, name="policy_restore"),
    path("settings/sweeps/", policy_views.sweeps_page, name="sweeps"),
    path("conflicts/", judging_views.conflicts_page, name="conflicts"),
    path("conflicts/<uuid:conflict_id>/resolve/", judging_views.conflict_resolve, name="conflict_resolve"),
    path("conflicts/<uuid:conflict_id>/undo/", judging_views.conflict_undo, name="conflict_undo"),
    path("quarantine/", judging_views.quarantine_page, name="quarantine"),
    path("quarantine/<uuid:memory_id>/undo/", judging_views.quarantine_undo, name="quarantine_undo"),
    re_path(
        rf"^quarantine/{UUID}/(?P<decision>release|reject)/$", judging_views.quarantine_decide, name="quarantine_decide"
    ),
    path(ONE + "promote/", judging_views.memory_promote, name="memory_promote"),
    path(ONE + "split/", judging_views.memory_split, name="memory_split"),
    path("memories/", views.memory_list, name="memories"),
    path(ONE, views.memory_detail, name="memory"),
    path(ONE + "edit/", views.memory_edit, name="memory_edit"),
    path(ONE + "forget/", views.memory_forget, name="memory_forget"),
    path(ONE + "rollback/<int:number>/", views.memory_rollback, name="memory_rollback"),
    path(ONE + "undo/", views.memory_undo, name="memory_undo"),
    re_path(rf"^memories/{UUID}/(?P<verb>{VERB})/$", views.memory_act, name="memory_act"),
]
