"""What is wrong with an installation, found by `manage.py check` and before every start."""

from typing import Any

from django.core.checks import CheckMessage, Error, register

from advisor.engine.version import ENGINE_VERSION
from profiling.stored_model import ModelRefused, description


@register()
def classifier_belongs_to_engine(**_: Any) -> list[CheckMessage]:
    """The label means what the engine says; a model that learned from another engine means something else."""
    try:
        learned_from = description()["training"]["engine"]
    except ModelRefused as refused:
        return [Error(str(refused), id="advisor.E001")]
    if learned_from == ENGINE_VERSION:
        return []
    return [
        Error(
            f"The stored classifier learned from engine {learned_from}, this is engine {ENGINE_VERSION}.",
            hint="Make it anew with: python manage.py train_classifier",
            id="advisor.E002",
        )
    ]
