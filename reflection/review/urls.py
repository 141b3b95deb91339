"""Addresses of the review, below /review/."""

from django.urls import path

from reflection.review import metric_views, views

urlpatterns = [
    path("", views.home, name="review"),
    path("open/", views.open_now, name="review-open"),
    path("next/", views.go_on, name="review-next"),
    path("items/<uuid:item_id>/", views.item_page, name="review-item"),
    path("items/<uuid:item_id>/decide/", views.decide, name="review-decide"),
    path("items/<uuid:item_id>/undo/", views.undo, name="review-undo"),
    path("metrics/", metric_views.metrics_page, name="review-metrics"),
    path("metrics/<slug:table>.csv", metric_views.metrics_table, name="review-metrics-table"),
    path("batches/<slug:week>/", views.batch_page, name="review-batch"),
]
