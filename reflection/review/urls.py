"""Addresses of the review, below /review/."""

from django.urls import path

from reflection.review import batch_views, metric_views, views

urlpatterns = [
    path("", views.home, name="review"),
    path("open/", views.open_now, name="review-open"),
    path("next/", views.go_on, name="review-next"),
    path("items/<uuid:item_id>/", views.item_page, name="review-item"),
    path("items/<uuid:item_id>/decide/", views.decide, name="review-decide"),
    path("items/<uuid:item_id>/undo/", views.undo, name="review-undo"),
    path("metrics/", metric_views.metrics_page, name="review-metrics"),
    path("metrics/<slug:table>.csv", metric_views.metrics_table, name="review-metrics-table"),
    path("metrics/<slug:table>.jsonl", metric_views.metrics_lines, name="review-metrics-lines"),
    path("conflicts/", views.conflicts_page, name="review-conflicts"),
    path("batches/<slug:week>/", batch_views.batch_page, name="review-batch"),
    path("batches/<slug:week>/act/", batch_views.batch_act, name="review-batch-act"),
    path("batches/<slug:week>/undo/", batch_views.batch_undo, name="review-batch-undo"),
    path("batches/<slug:week>/items.<slug:form>", batch_views.batch_export, name="review-batch-export"),
]
