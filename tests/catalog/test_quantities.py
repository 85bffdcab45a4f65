"""Numbers with units, as people paste them."""

import pytest

from catalog.quantities import Claim, Dimension, UnreadableQuantity, read_quantity

BYTES, RATE, OPS = Dimension.BYTES, Dimension.BYTES_PER_S, Dimension.OPS_PER_S


@pytest.mark.parametrize(
    ("text", "value", "dimension"),
    [
        ("900", 900, None),
        (" 1,800.5 ", 1800.5, None),
        ("1e3", 1000, None),
        ("1.8 TB/s", 1.8e12, RATE),
        ("900GB/s", 900e9, RATE),
        ("900 GBps", 900e9, RATE),
        ("7.2 Tbit/s", 900e9, RATE),
        ("4800 Gbps", 600e9, RATE),
        ("400 Gb/s", 50e9, RATE),
        ("80 GB", 80e9, BYTES),
        ("80 GiB", 80 * 2**30, BYTES),
        ("183,359 MiB", 183359 * 2**20, BYTES),
        ("989.4 TFLOPS", 989.4e12, OPS),
        ("2.25 PFLOP/s dense", 2.25e15, OPS),
        ("1830 MHz", 1.83e9, Dimension.HERTZ),
        ("1.2 kW", 1200, Dimension.WATTS),
    ],
)
def test_a_number_with_its_unit(text, value, dimension):
    read = read_quantity(text)
    assert (read.value, read.dimension, read.times, read.claims) == (value, dimension, 1, frozenset())


@pytest.mark.parametrize(
    ("text", "value", "times", "claims"),
    [
        ("1.8 TB/s per link", 1.8e12, 1, {Claim.PER_LINK}),
        ("900 GB/s bidirectional per link", 900e9, 1, {Claim.PER_LINK, Claim.BOTH_WAYS}),
        ("600 GB/s (both directions)", 600e9, 1, {Claim.BOTH_WAYS}),
        ("18 x 25 GB/s", 25e9, 18, set()),
        ("18xNVLink 25GB/s", 25e9, 18, set()),
        ("1979 TFLOPS with sparsity", 1979e12, 1, {Claim.SPARSE}),
    ],
)
def test_what_is_said_besides_the_number(text, value, times, claims):
    read = read_quantity(text)
    assert (read.value, read.times, read.claims) == (value, times, claims)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not a number"),
        ("much", "is not a number"),
        ("nan", "is not a number"),
        ("1.2.3", "is not a number"),
        ("1e999", "too large"),
        ("1,8 TB/s", "with a decimal point"),
        ("900 gb/s", "bits or bytes"),
        ("900 parsec", "no unit that we know"),
    ],
)
def test_what_cannot_be_read_is_answered(text, says):
    with pytest.raises(UnreadableQuantity, match=says):
        read_quantity(text)
