"""Checks where a client is sent and what it shows there."""

import ipaddress

import httpx


def checked_url(text: str) -> str:
    """Return the address of an API without a slash at its end.

    Raises:
        ValueError: It is none. What may be a secret in it is not quoted.
    """
    try:
        url = httpx.URL(text.strip())
    except httpx.InvalidURL as error:
        raise ValueError(f"no valid address: {error}") from None
    if url.userinfo or url.query or url.fragment:
        raise ValueError("the address must not carry a user, a query or a fragment; the key has a place of its own")
    if url.scheme not in {"http", "https"} or not url.host:
        raise ValueError(f"{text!r} is no address of an API; write http://host:port")
    return str(url).rstrip("/")


def checked_secret(text: str, name: str) -> str:
    """Return a bearer secret that fits a header; `name` is what the caller calls it.

    Raises:
        ValueError: It cannot be one; it is not quoted.
    """
    secret = text.strip()
    if not secret or not secret.isascii() or not secret.isprintable() or " " in secret:
        raise ValueError(f"the {name} is empty or holds characters that no {name} has")
    return secret


def is_loopback(url: str) -> bool:
    """Tell whether an address is on this machine, where no proxy of the environment has a say."""
    host = httpx.URL(url).host
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
