"""Addresses of the pages of traces."""

from django.urls import path

from reflection import views

urlpatterns = [
    path("traces/", views.trace_list, name="traces"),
    path("traces/<uuid:trace_id>/", views.trace_detail, name="trace"),
    path("traces/<uuid:trace_id>/reflect/", views.trace_reflect, name="trace_reflect"),
]
