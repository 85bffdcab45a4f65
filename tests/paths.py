"""Where tests find things."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent

_reference = REPOSITORY.parent / "shared"
SHARED: Path | None = _reference if (_reference / "traces").is_dir() else None
"""Real captures and published figures, beside the checkout where they are present; their tests skip elsewhere."""
