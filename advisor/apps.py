from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AdvisorConfig(AppConfig):
    name = "advisor"
    verbose_name = _("Advisor")

    def ready(self) -> None:
        from advisor import celery, checks  # noqa: F401  registers the Celery application and the checks
