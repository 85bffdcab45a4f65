"""Groups of countries that buyers ask for, by ISO 3166-1 codes."""

EEA = "EEA"
"""Asked for like a country; three letters, so that it is none."""

_EUROPEAN_UNION = "AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK"
_WITH_IT_IN_THE_EEA = "IS LI NO"
EEA_COUNTRIES = frozenset(f"{_EUROPEAN_UNION} {_WITH_IT_IN_THE_EEA}".split())


def countries_of(codes: list[str]) -> frozenset[str]:
    """The countries that these codes stand for: each its own, ``EEA`` its thirty."""
    return frozenset(codes) - {EEA} | (EEA_COUNTRIES if EEA in codes else frozenset())
