"""The wire format: what was written is read, in single messages and in columns; what cannot be is refused."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiling.formats.limits import Limits
from profiling.formats.protobuf_wire import Messages, Span, WireFile, field_columns, fields, signed, varints
from profiling.notes import Refusal, RefusalCode
from tests.profiling.formats.wire import field, message, varint

NUMBERS = st.integers(0, 2**64 - 1)
FIELDS = st.lists(st.tuples(st.integers(1, 3000), NUMBERS | st.binary(max_size=200)), max_size=12)


def wire(data: bytes, **limits: int) -> WireFile:
    return WireFile(io.BytesIO(data), len(data), Limits(**limits))


@given(FIELDS)
def test_fields_come_back_as_written(written: list[tuple[int, int | bytes]]) -> None:
    assert list(fields(message(*written))) == written


@given(FIELDS)
def test_a_file_shows_the_same_fields_as_places(written: list[tuple[int, int | bytes]]) -> None:
    data = message(*written)
    file = wire(data)
    seen = [
        (number, file.payload(value) if isinstance(value, Span) else value)
        for number, value in file.inside(0, len(data))
    ]
    assert seen == written


@given(st.lists(FIELDS, min_size=1, max_size=8))
def test_columns_hold_the_fields_of_each_message(written: list[list[tuple[int, int | bytes]]]) -> None:
    messages = Messages.of([message(*one) for one in written])
    seen: list[list[tuple[int, int | bytes]]] = [[] for _ in written]
    for which, number, kind, value, end in field_columns(messages):
        for at, key, sort, found, stop in zip(
            *(column.tolist() for column in (which, number, kind, value, end)), strict=True
        ):
            seen[at].append((key, messages.bytes_at(found, stop) if sort == 2 else found))
    assert seen == written


@given(st.lists(NUMBERS, min_size=1, max_size=50))
def test_a_column_of_numbers_is_read_at_once(numbers: list[int]) -> None:
    encoded = [varint(number) for number in numbers]
    messages = Messages.of(encoded)
    values, ends = varints(messages.data, messages.start)
    assert values.tolist() == numbers
    assert ends.tolist() == messages.end.tolist()


@given(st.integers(-(2**63), 2**63 - 1))
def test_negative_numbers_keep_their_sign(number: int) -> None:
    ((_, value),) = fields(field(1, number))
    assert isinstance(value, int)
    assert signed(value) == number


@given(st.lists(st.binary(max_size=300), max_size=40), st.lists(st.binary(max_size=300), max_size=5))
def test_repeated_fields_are_found_among_others(wanted: list[bytes], others: list[bytes]) -> None:
    data = message((1, 7), *((2, other) for other in others), *((4, one) for one in wanted), (9, 5))
    assert [one for some in wire(data).repeated(4, 0, len(data)) for one in some] == wanted


def test_repeated_fields_run_over_the_borders_of_blocks() -> None:
    wanted = [bytes([at % 251]) * (at % 900) for at in range(6000)]
    data = message(*((4, one) for one in wanted))
    batches = list(wire(data).repeated(4, 0, len(data)))
    assert len(batches) > 1
    assert [one for some in batches for one in some] == wanted


def test_a_payload_larger_than_a_block_is_read_up_to_the_limit() -> None:
    data = field(4, bytes(3 << 20))
    assert [len(one) for some in wire(data).repeated(4, 0, len(data)) for one in some] == [3 << 20]
    with pytest.raises(Refusal) as caught:
        list(wire(data, event_bytes=1 << 20).repeated(4, 0, len(data)))
    assert caught.value.code is RefusalCode.EVENT_TOO_LONG


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x0a\x05abc", id="longer than the message"),
        pytest.param(b"\x0a" + b"\xff" * 9 + b"\x01", id="longer than any file"),
        pytest.param(b"\x08" + b"\xff" * 11, id="endless number"),
        pytest.param(b"\x0b", id="a group"),
        pytest.param(b"\x08", id="no value"),
        pytest.param(b"\x09\x00", id="half a fixed number"),
    ],
)
def test_fields_that_do_not_add_up_are_refused(data: bytes) -> None:
    for read in (
        lambda: list(fields(data)),
        lambda: list(wire(data).inside(0, len(data))),
        lambda: list(field_columns(Messages.of([data]))),
        lambda: list(wire(data).repeated(1, 0, len(data))),
    ):
        with pytest.raises(Refusal) as caught:
            read()
        assert caught.value.code is RefusalCode.PROTOBUF_DAMAGED


def test_nesting_costs_nothing() -> None:
    data = b""
    for _ in range(3000):
        data = field(1, data)
    assert [number for number, _ in fields(data)] == [1]


def test_a_message_of_endless_fields_is_refused() -> None:
    messages = Messages.of([field(1, 1) * 100_000])
    with pytest.raises(Refusal):
        for _ in field_columns(messages):
            pass


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=20))
def test_any_bytes_are_read_or_refused(blobs: list[bytes]) -> None:
    try:
        for column in field_columns(Messages.of(blobs)):
            assert (column.end <= np.cumsum([len(blob) for blob in blobs])[column.which]).all()
    except Refusal as refusal:
        assert refusal.code is RefusalCode.PROTOBUF_DAMAGED
