"""Which hosts and addresses a feed may be fetched from: names of the public internet, nothing inside a network.

Source: IANA's special-purpose address registries (https://www.iana.org/assignments/iana-ipv4-special-registry and
iana-ipv6-special-registry), and https://cheatsheetseries.owasp.org on server-side request forgery.
"""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import idna

NAME_CHARACTERS = 253
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")
_V6_UNICAST = ip_network("2000::/3")
_NAT64 = ip_network("64:ff9b::/96")
# Special ranges that ``is_global`` of Python 3.11 lets through, and relays that lead to any IPv4 address.
_NEVER = tuple(
    ip_network(text)
    for text in ("192.0.0.0/24", "192.88.99.0/24", "192.175.48.0/24", "2001::/23", "2002::/16", "3fff::/20")
)


def host_name(host: str) -> str | None:
    """The name in lower-case ASCII as DNS and TLS know it; None for what is not a full name, e.g. any address.

    A last label that is a number makes an address in some spelling (``2130706433``, ``0177.0.0.1``, ``0x7f.1``).
    """
    if len(host) > NAME_CHARACTERS:
        return None
    try:
        name = idna.encode(host, uts46=True, std3_rules=True).decode("ascii").lower()
    except UnicodeError:
        return None
    labels = name.split(".")
    if len(name) > NAME_CHARACTERS or len(labels) < 2 or not labels[-1] or _NUMERIC.fullmatch(labels[-1]):
        return None
    return name


def is_public(address: str) -> bool:
    """True where this numeric address is globally routable unicast, also behind an IPv4-in-IPv6 spelling."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    inner = _ipv4_inside(parsed)
    if inner is not None:
        return is_public(str(inner))
    if isinstance(parsed, IPv6Address) and (parsed.scope_id or parsed not in _V6_UNICAST):
        return False
    return parsed.is_global and not parsed.is_multicast and not any(parsed in network for network in _NEVER)


def _ipv4_inside(address: IPv4Address | IPv6Address) -> IPv4Address | None:
    """What a mapped or NAT64 address leads to; 6to4 and Teredo are refused whole."""
    if isinstance(address, IPv4Address):
        return None
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped
