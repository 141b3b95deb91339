"""The memory API's addresses, below /api/v1/."""

from django.urls import path

from memories.api import agents, memories, recall, usage, verbs

urlpatterns = [
    path("me", agents.MeView.as_view()),
    path("usage", usage.UsageView.as_view()),
    path("agents", agents.AgentsView.as_view()),
    path("agents/<slug:slug>", agents.AgentView.as_view()),
    path("scopes", agents.ScopesView.as_view()),
    path("scopes/<slug:slug>", agents.ScopeView.as_view()),
    path("scopes/<slug:slug>/grants", agents.GrantsView.as_view()),
    path("memories", memories.MemoriesView.as_view()),
    path("memories/bulk", memories.BulkView.as_view()),
    path("memories/<uuid:memory_id>", memories.MemoryView.as_view()),
    path("memories/<uuid:memory_id>/approve", verbs.Approve.as_view()),
    path("memories/<uuid:memory_id>/demote", verbs.Demote.as_view()),
    path("memories/<uuid:memory_id>/archive", verbs.Archive.as_view()),
    path("memories/<uuid:memory_id>/restore", verbs.Restore.as_view()),
    path("memories/<uuid:memory_id>/pin", verbs.Pin.as_view()),
    path("memories/<uuid:memory_id>/forget", verbs.Forget.as_view()),
    path("memories/<uuid:memory_id>/rollback", verbs.Rollback.as_view()),
    path("memories/<uuid:memory_id>/evidence", verbs.EvidenceView.as_view()),
    path("memories/<uuid:memory_id>/revisions", verbs.RevisionsView.as_view()),
    path("memories/<uuid:memory_id>/relations", verbs.RelationsView.as_view()),
    path("memories/<uuid:memory_id>/recalls", verbs.RecallsView.as_view()),
    path("recall", recall.RecallView.as_view()),
    path("feedback", recall.FeedbackView.as_view()),
]
