"""The limits of reading as the settings have them."""

from django.conf import settings

from profiling.formats.limits import Limits


def limits() -> Limits:
    """What one upload may use up."""
    return Limits(
        bytes_out=settings.TRACE_MAX_UNPACKED_BYTES,
        ratio=settings.TRACE_MAX_RATIO,
        depth=settings.TRACE_MAX_DEPTH,
        events=settings.TRACE_MAX_EVENTS,
        event_bytes=settings.TRACE_MAX_EVENT_BYTES,
        metadata_bytes=settings.TRACE_MAX_METADATA_BYTES,
        blank_bytes=settings.TRACE_MAX_BLANK_BYTES,
        names=settings.TRACE_MAX_NAMES,
        devices=settings.TRACE_MAX_DEVICES,
        seconds=settings.TRACE_MAX_SECONDS,
        name_characters=settings.TRACE_MAX_NAME_CHARACTERS,
        line_characters=settings.TRACE_MAX_LINE_CHARACTERS,
        rows=settings.TRACE_MAX_ROWS,
        members=settings.TRACE_MAX_MEMBERS,
        layers=settings.TRACE_MAX_LAYERS,
        window_bytes=settings.TRACE_MAX_WINDOW_BYTES,
    )
