"""Addresses of a person's own pages, and of connecting agents."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from hindsight_site import connect
from hindsight_site.accounts import views

urlpatterns = [
    path("login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("team/switch/", views.switch_team, name="switch_team"),
    path("account/theme/", views.set_theme, name="set_theme"),
    path("connect/", connect.connect, name="connect"),
    path("connect/agents/", connect.add_agent, name="add_agent"),
    path("connect/<slug:slug>/", connect.connect_agent, name="connect_agent"),
    path("connect/<slug:slug>/tokens/", connect.add_token, name="add_token"),
    path("connect/<slug:slug>/tokens/<uuid:token_id>/revoke/", connect.revoke_token, name="revoke_token"),
]
