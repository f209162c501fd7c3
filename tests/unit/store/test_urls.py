"""Test that no part of a password is shown: any password, at both places of an address (finding L1)."""

from hypothesis import example, given
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict

from waylore.store.urls import MASK, without_password

PASSWORDS = st.text(st.sampled_from("@/:?&=#% <>ß'\""), max_size=6)


@given(PASSWORDS, PASSWORDS, st.sampled_from(["", "cells+"]))
@example("/a@", "", "")
@example("?password=", "", "")
@example("?password=a@b&user=", "", "")
def test_password_after_the_user_is_masked(first: str, second: str, prefix: str) -> None:
    shown = without_password(f"{prefix}postgresql://u:Qx7{first}Zk9{second}Wv3@host:5432/db")
    assert not [part for part in ("Qx7", "Zk9", "Wv3") if part in shown], shown
    assert shown.startswith(f"{prefix}postgresql://u:{MASK}")


@given(PASSWORDS.map(lambda text: text.replace("&", "")), st.sampled_from(["password", "sslpassword", "p%61ssword"]))
def test_password_as_a_parameter_is_masked(inner: str, name: str) -> None:
    for place in ("host/db", "host:5432/db", "me@host/db", "me:Qx7@host/db"):
        shown = without_password(f"postgresql://{place}?sslmode=require&{name}=Qx7{inner}Zk9&a=b")
        assert not [part for part in ("Qx7", "Zk9") if part in shown], shown


def test_what_is_no_password_is_shown() -> None:
    for url in (
        "memory.waylore",
        "/a/b@c.waylore",
        "postgresql://me@host:5432/db?sslmode=require",
        "http://[::1]:80/v1",
    ):
        assert without_password(url) == url
    url = "postgresql://me:sesame@host:5432/db?password=other&sslmode=require"
    assert conninfo_to_dict(without_password(url)) == conninfo_to_dict(url) | {"password": MASK}
