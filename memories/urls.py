"""Addresses of the pages of memories."""

from django.urls import path, re_path

from memories import verbs, views

ONE = "memories/<uuid:memory_id>/"
UUID = "(?P<memory_id>[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})"
VERB = "|".join(verbs.VERBS)

urlpatterns = [
    path("usage/", views.usage_page, name="usage"),
    path("memories/", views.memory_list, name="memories"),
    path(ONE, views.memory_detail, name="memory"),
    path(ONE + "edit/", views.memory_edit, name="memory_edit"),
    path(ONE + "forget/", views.memory_forget, name="memory_forget"),
    path(ONE + "rollback/<int:number>/", views.memory_rollback, name="memory_rollback"),
    path(ONE + "undo/", views.memory_undo, name="memory_undo"),
    re_path(rf"^memories/{UUID}/(?P<verb>{VERB})/$", views.memory_act, name="memory_act"),
]
