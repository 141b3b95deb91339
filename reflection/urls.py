"""Addresses of the pages of traces, and of what is done to the whole team: erasing, exporting, importing."""

from django.urls import path

from reflection import erasure_views, model_views, transfer_views, views

urlpatterns = [
    path("erase/", erasure_views.erase, name="erase"),
    path("export/", transfer_views.export, name="export"),
    path("export/<uuid:job_id>/file/", transfer_views.export_file, name="export_file"),
    path("consolidate/", transfer_views.consolidate, name="consolidate"),
    path("import/", transfer_views.import_page, name="import"),
    path("settings/model/", model_views.model_page, name="team_model"),
    path("settings/model/act/", model_views.model_act, name="team_model_act"),
    path("traces/", views.trace_list, name="traces"),
    path("traces/progress/", views.trace_progress, name="trace_progress"),
    path("traces/<uuid:trace_id>/", views.trace_detail, name="trace"),
    path("traces/<uuid:trace_id>/reflect/", views.trace_reflect, name="trace_reflect"),
]
