from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ProfilingConfig(AppConfig):
    name = "profiling"
    verbose_name = _("Profiling")
