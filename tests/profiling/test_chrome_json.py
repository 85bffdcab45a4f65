"""The streaming reader: where a file is cut must never matter, and damage is told, not guessed over."""

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiling.formats.chrome_json import EventStream
from profiling.formats.limits import Limits
from profiling.formats.times import INVALID, nanoseconds
from profiling.formats.trace_events import Batch, Event, decode_events, duplicate_keys
from profiling.notes import NoteCode, Refusal, RefusalCode

TEXT = st.text(alphabet=st.sampled_from('ab"\\{}[],: \n\té€'), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
EVENTS = st.lists(
    st.fixed_dictionaries(
        {"ph": st.sampled_from("XMis"), "name": TEXT, "ts": st.integers(0, 9), "dur": st.integers(0, 9)},
        optional={"cat": TEXT, "args": st.dictionaries(TEXT, VALUES, max_size=3)},
    ),
    max_size=6,
)


def _stream(text: bytes, size: int) -> EventStream:
    def chunks() -> Iterator[bytes]:
        for start in range(0, len(text), size):
            yield text[start : start + size]

    return EventStream(chunks(), Limits(), batch_bytes=1)


def _read(text: bytes, size: int = 1 << 20) -> tuple[list[Event], EventStream]:
    stream = _stream(text, size)
    return [event for batch in stream.batches() for event in batch.events], stream


def _plain(events: list[Event]) -> list[tuple[Any, ...]]:
    return [(event.ph, event.name, event.cat, event.ts, event.dur, bytes(event.args)) for event in events]


@given(EVENTS, st.integers(5, 400), st.sampled_from([None, 1]), st.booleans())
@settings(max_examples=100)
def test_chunks_of_any_size_give_the_same_events(
    events: list[dict[str, Any]], size: int, indent: int | None, bare: bool
) -> None:
    document = events if bare else {"schemaVersion": 1, "traceEvents": events, "distributedInfo": {"rank": 3}}
    text = json.dumps(document, indent=indent).encode()
    found, stream = _read(text, size)
    assert [(event.ph, event.name, event.dur) for event in found] == [(e["ph"], e["name"], e["dur"]) for e in events]
    assert _plain(found) == _plain(_read(text)[0])
    assert stream.complete
    assert not +stream.repairs
    assert bare or stream.metadata == {"schemaVersion": 1, "distributedInfo": {"rank": 3}}


@given(EVENTS.filter(len), st.data())
@settings(max_examples=100)
def test_a_cut_file_never_yields_more_than_was_written_and_says_that_it_is_cut(
    events: list[dict[str, Any]], data: st.DataObject
) -> None:
    text = json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()
    end = text.rindex(b"]")
    cut = data.draw(st.integers(text.index(b"[") + 1, end))
    found, stream = _read(text[:cut], 64)
    assert not stream.complete
    assert [event.name for event in found] == [event["name"] for event in events[: len(found)]]


EVENT = b'{"ph":"X","cat":"kernel","name":"k%d","ts":1,"dur":2}'


def _document(*events: bytes, tail: bytes = b"]}") -> bytes:
    return b'{"schemaVersion":1,"traceEvents":[' + b",".join(events) + tail


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (b'{"ph":"X","name":"C:\\path","ts":1,"dur":2}', NoteCode.ESCAPES_REPAIRED),
        (b'{"ph":"X","name":"two\nlines","ts":1,"dur":2}', NoteCode.CONTROL_CHARACTERS),
        (b'{"ph":"X","name":"a","ts":1,"dur":2,"args":{"x":-inf}}', NoteCode.BARE_NUMBERS),
        (b'{"ph":"X","name":"a","ts":1,"dur":2,"args":{"x":-1.#IND00}}', NoteCode.BARE_NUMBERS),
        (b'{"ph":"X","name":"a","ts":1e999,"dur":2}', NoteCode.BARE_NUMBERS),
        (b'{"ph":"X","name":"a","ts":1,"dur":2,"args":{"x":0x7f}}', NoteCode.BARE_TOKENS),
        (b'{"ph":"X","name":"a","ts":1,"dur":2,"args":{"x":}}', NoteCode.BARE_TOKENS),
        (b'{"ph":"X","name":"a","ts":1,"dur":2,}', NoteCode.TRAILING_COMMA),
        (b'{"ph":"X","name":"\xff","ts":1,"dur":2}', NoteCode.NAMES_NOT_UTF8),
        (b'{"ph":"X","name":"\\ud800","ts":1,"dur":2}', NoteCode.NAMES_NOT_UTF8),
    ],
)
@pytest.mark.parametrize("size", [1 << 20, 90])
def test_known_faults_are_mended_and_counted(event: bytes, code: NoteCode, size: int) -> None:
    found, stream = _read(_document(EVENT % 1, event, EVENT % 2), size)
    assert [one.dur for one in found] == [2, 2, 2]
    assert stream.repairs[code] == 1


@pytest.mark.parametrize(
    ("event", "count"),
    [
        (b'{"ph":"X","dur":9,"dur":2}', 1),
        (b'{"ph":"X","args":{"stream":9},"args":{"stream":2}}', 1),
        (b'{"ph":"X","dur":9,"dur":2,"args":{"stream":9,"stream":2}}', 1),
        (b'{"ph":"X","args":{"stream":9,"stream":2}}', 1),
        (b'{"ph":"X","dur":9,"dur":9}', 0),
    ],
)
def test_events_that_say_a_key_twice_are_counted_once(event: bytes, count: int) -> None:
    text = b"[" + b",".join([EVENT % 1, event, EVENT % 2]) + b"]"
    assert duplicate_keys(Batch(decode_events(text), text)) == count


LIKE_FAULTS = ['":}', '",}', "a:inf}", ": nan,", ":0x7f}", ":None,", ":1e999}", "a,]", "[,", '\\":,']


@pytest.mark.parametrize("name", LIKE_FAULTS)
@pytest.mark.parametrize("fault", [b'"x":nan', b'"x":"\xff"', b'"x" 1'])
def test_what_looks_like_a_fault_inside_a_name_is_none(name: str, fault: bytes) -> None:
    event = json.dumps({"ph": "X", "name": name, "ts": 1, "dur": 2}).encode()
    found, _ = _read(_document(event, b'{"ph":"X","name":"a","ts":1,"dur":2,"args":{' + fault + b"}}", *[event] * 9))
    assert [one.name for one in found if one.name != "a"] == [name] * 10


def test_a_stray_quote_costs_one_event_and_its_neighbours_are_mended() -> None:
    broken = b'{"ph":"X","name":"a"b","ts":1,"dur":2}'
    faulty = b'{"ph":"X","name":":}","ts":1,"dur":2,"args":{"x":nan}}'
    found, stream = _read(_document(EVENT % 1, broken, *[faulty] * 20))
    assert [one.name for one in found] == ["k1", *[":}"] * 20]
    assert +stream.repairs == {NoteCode.EVENTS_UNREADABLE: 1, NoteCode.BARE_NUMBERS: 20}


def test_an_event_beyond_repair_costs_itself_only() -> None:
    events = [EVENT % number for number in range(40)]
    events[7] = b'{"ph":"X","name":"k7" "ts":1}'
    found, stream = _read(_document(*events), 300)
    assert len(found) == 39
    assert stream.repairs[NoteCode.EVENTS_UNREADABLE] == 1


@pytest.mark.parametrize("stray", [b"]", b"]}", b"] garbage "])
@pytest.mark.parametrize("head", [b"[", b'{"schemaVersion":1,"traceEvents":['])
@pytest.mark.parametrize("size", [1 << 20, 90])
def test_events_behind_a_stray_bracket_are_told_as_lost(stray: bytes, head: bytes, size: int) -> None:
    events = [EVENT % number for number in range(100)]
    text = head + b",".join(events[:50]) + stray + b"," + b",".join(events[50:]) + b"]}"
    found, stream = _read(text, size)
    assert len(found) == 50
    assert +stream.repairs == {NoteCode.EVENTS_UNREADABLE: 50}


@pytest.mark.parametrize(
    "tail", [b"]} garbage", b'],"traceName":"x"} garbage', b"]}]", b'],"traceName":"C:\\path"},"more":1}']
)
def test_text_behind_the_document_is_told(tail: bytes) -> None:
    found, stream = _read(_document(EVENT % 1, tail=tail))
    assert len(found) == 1
    assert stream.repairs[NoteCode.TEXT_AFTER_END] == 1
    assert stream.repairs[NoteCode.METADATA_UNREADABLE] == 0
    assert ("traceName" in stream.metadata) == (b"traceName" in tail)


def test_blank_text_behind_the_document_is_not_told() -> None:
    _, stream = _read(_document(EVENT % 1, tail=b"]}\n \x00\x00"))
    assert not +stream.repairs


def test_text_that_is_mostly_broken_is_refused() -> None:
    with pytest.raises(Refusal) as caught:
        _read(_document(*[b'{"ph":"X" "name":"k"}'] * 40))
    assert caught.value.code == RefusalCode.INVALID_JSON


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"[" * 100_000, RefusalCode.TOO_DEEP),
        (b'{"traceEvents":[{"args":' + b"[" * 100_000, RefusalCode.TOO_DEEP),
        (b'{"a":' * 50_000, RefusalCode.TOO_DEEP),
        (_document(EVENT % 1) + _document(EVENT % 2), RefusalCode.TWO_DOCUMENTS),
        (b"[" + EVENT % 1 + b"][" + EVENT % 2 + b"]", RefusalCode.TWO_DOCUMENTS),
        (b'{"a":1}', RefusalCode.NO_TRACE_EVENTS),
        (b'{"traceEvents":{"a":1}}', RefusalCode.NO_TRACE_EVENTS),
        (b'{"a":1', RefusalCode.FILE_TRUNCATED),
        (b'{"a":1 2}', RefusalCode.INVALID_JSON),
        (b"[1,2]", RefusalCode.NO_TRACE_EVENTS),
    ],
    ids=["brackets", "event", "head", "two objects", "two lists", "none", "object", "cut", "wrong", "numbers"],
)
def test_what_holds_no_events_is_refused(text: bytes, code: RefusalCode) -> None:
    with pytest.raises(Refusal) as caught:
        _read(text)
    assert caught.value.code == code


def test_one_endless_event_is_refused_in_bounded_memory() -> None:
    def chunks() -> Iterator[bytes]:
        yield b'{"traceEvents":[{"name":"'
        while True:
            yield b"a" * (1 << 20)

    with pytest.raises(Refusal) as caught:
        list(EventStream(chunks(), Limits(event_bytes=4 << 20)).batches())
    assert caught.value.code == RefusalCode.EVENT_TOO_LONG
    assert caught.value.params["limit"] == 4 << 20


@pytest.mark.parametrize("part", [b"[", b'[\\"', b"\\\\"])
def test_brackets_in_a_string_that_goes_on_in_the_next_piece_are_not_nesting(part: bytes) -> None:
    text = _document(b'{"ph":"X","name":"' + part * 400_000 + b'"}', EVENT % 1)
    for size in (1 << 17, (1 << 17) + 1):
        _, stream = _read(text, size)
        assert stream.events == 2


def test_more_events_than_the_limit_are_refused() -> None:
    with pytest.raises(Refusal) as caught:
        list(EventStream(iter([_document(*[EVENT % 1] * 50)]), Limits(events=49)).batches())
    assert caught.value.params["limit"] == 49


@given(st.lists(st.decimals(0, 4_000_000_000_000_000, places=3, allow_nan=False), max_size=20))
def test_times_are_exact_to_the_nanosecond_however_written(times: list[Decimal]) -> None:
    exact = [int(time * 1000) for time in times]
    assert nanoseconds([float(time) for time in times], lambda: times).tolist() == exact
    assert nanoseconds([str(time) for time in times], lambda: times).tolist() == exact
    assert nanoseconds([int(time) for time in times], lambda: times).tolist() == [int(time) * 1000 for time in times]


def test_what_is_no_time_is_marked_invalid() -> None:
    odd = [None, "12abc", "nan", True, [1], 9.3e18, {}, "1.5"]
    assert nanoseconds(odd, lambda: odd).tolist() == [INVALID] * 7 + [1500]


def test_the_place_of_a_fault_is_given_in_bytes_of_the_document() -> None:
    text = _document(*[EVENT % 1] * 20, *[b'{"ph":"X" "name":"k"}'] * 20)
    for size in (1 << 20, 700):
        with pytest.raises(Refusal) as caught:
            _read(text, size)
        assert caught.value.code == RefusalCode.INVALID_JSON
        assert text[int(caught.value.params["byte"]) :].startswith(b'"name":"k"')


def test_the_place_of_too_deep_nesting_is_given_too() -> None:
    text = _document(*[EVENT % 1] * 20, b'{"args":' + b"[" * 5000)
    with pytest.raises(Refusal) as caught:
        _read(text, 300)
    assert int(caught.value.params["byte"]) == text.index(b"[[") + 64 - 1
