"""The trace and reflection API's addresses, below /api/v1/."""

from django.urls import path

from reflection.api import erasures, models, progress, reflections, reviews, traces, transfers

urlpatterns = [
    path("erasures", erasures.ErasuresView.as_view()),
    path("erasures/preview", erasures.ErasurePreviewView.as_view()),
    path("exports", transfers.ExportsView.as_view()),
    path("exports/<uuid:job_id>/file", transfers.ExportFileView.as_view()),
    path("imports", transfers.ImportsView.as_view()),
    path("model", models.ModelView.as_view()),
    path("model/test", models.ModelTestView.as_view()),
    path("traces", traces.TracesView.as_view()),
    path("traces/<uuid:trace_id>", traces.TraceView.as_view()),
    path("traces/<uuid:trace_id>/steps", traces.StepsView.as_view()),
    path("traces/<uuid:trace_id>/finish", traces.FinishView.as_view()),
    path("reflections", reflections.ReflectionsView.as_view()),
    path("reflections/progress", progress.ProgressView.as_view()),
    path("reflections/<uuid:reflection_id>", reflections.ReflectionView.as_view()),
    path("reviews/batches", reviews.BatchesView.as_view()),
    path("reviews/batches/<uuid:batch_id>/items", reviews.ItemsView.as_view()),
    path("reviews/items/<uuid:item_id>/verdict", reviews.VerdictView.as_view()),
    path("reviews/items/<uuid:item_id>/settle", reviews.SettleView.as_view()),
    path("reviews/items/<uuid:item_id>/undo", reviews.UndoView.as_view()),
]
