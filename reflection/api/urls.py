"""The trace and reflection API's addresses, below /api/v1/."""

from django.urls import path

from reflection.api import reflections, traces

urlpatterns = [
    path("traces", traces.TracesView.as_view()),
    path("traces/<uuid:trace_id>", traces.TraceView.as_view()),
    path("traces/<uuid:trace_id>/steps", traces.StepsView.as_view()),
    path("traces/<uuid:trace_id>/finish", traces.FinishView.as_view()),
    path("reflections", reflections.ReflectionsView.as_view()),
    path("reflections/<uuid:reflection_id>", reflections.ReflectionView.as_view()),
]
