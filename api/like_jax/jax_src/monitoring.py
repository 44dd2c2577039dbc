"""Events that programs record for listeners: the names of `jax.monitoring`. Tapeless records none itself."""

from collections.abc import Callable
from typing import Any

__all__ = [
    "clear_event_listeners",
    "record_event",
    "record_event_duration_secs",
    "record_event_time_span",
    "record_scalar",
    "register_event_duration_secs_listener",
    "register_event_listener",
    "register_event_time_span_listener",
    "register_scalar_listener",
    "unregister_event_duration_listener",
    "unregister_event_listener",
    "unregister_event_time_span_listener",
    "unregister_scalar_listener",
]

_Listener = Callable[..., Any]
_of_events: list[_Listener] = []
_of_durations: list[_Listener] = []
_of_time_spans: list[_Listener] = []
_of_scalars: list[_Listener] = []


def record_event(event: str, **kwargs: str | int) -> None:
    """Call every listener to events with an event's name."""
    for listener in _of_events:
        listener(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Call every listener to durations with an event's name and its duration in seconds."""
    for listener in _of_durations:
        listener(event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
    """Call every listener to time spans with an event's name, its start and its end in seconds."""
    for listener in _of_time_spans:
        listener(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Call every listener to scalars with an event's name and a number."""
    for listener in _of_scalars:
        listener(event, value, **kwargs)


def register_event_listener(callback: _Listener) -> None:
    """Call a function at every `record_event`, with its arguments."""
    _of_events.append(callback)


def register_event_duration_secs_listener(callback: _Listener) -> None:
    """Call a function at every `record_event_duration_secs`, with its arguments."""
    _of_durations.append(callback)


def register_event_time_span_listener(callback: _Listener) -> None:
    """Call a function at every `record_event_time_span`, with its arguments."""
    _of_time_spans.append(callback)


def register_scalar_listener(callback: _Listener) -> None:
    """Call a function at every `record_scalar`, with its arguments."""
    _of_scalars.append(callback)


def unregister_event_listener(callback: _Listener) -> None:
    """Stop calling a listener to events. Raises: ValueError if it is none."""
    _of_events.remove(callback)


def unregister_event_duration_listener(callback: _Listener) -> None:
    """Stop calling a listener to durations. Raises: ValueError if it is none."""
    _of_durations.remove(callback)


def unregister_event_time_span_listener(callback: _Listener) -> None:
    """Stop calling a listener to time spans. Raises: ValueError if it is none."""
    _of_time_spans.remove(callback)


def unregister_scalar_listener(callback: _Listener) -> None:
    """Stop calling a listener to scalars. Raises: ValueError if it is none."""
    _of_scalars.remove(callback)


def clear_event_listeners() -> None:
    """Stop calling any listener."""
    for listeners in (_of_events, _of_durations, _of_time_spans, _of_scalars):
        listeners.clear()
