"""What tests of background jobs share."""

import pytest

from profiling import runs


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What would go to the broker, as (task, run id)."""
    messages: list[tuple[str, str]] = []
    monkeypatch.setattr(runs.current_app, "send_task", lambda task, args: messages.append((task, args[0])))
    return messages
