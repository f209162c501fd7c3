"""Secrets are found by their format; what only looks like one stays, and offsets lead back to the original."""

import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.indexing.secrets.samples import KEY, OTHERS, PASSWORD, SECRETS
from waylore.indexing.secrets.leave_out import CleanText, Offsets, Secret, leave_out, replace_secrets
from waylore.service.keys import make_key

LINES = ["".join(parts) for _, *parts in SECRETS]
words = st.text(string.ascii_lowercase + " \n.,é漢", max_size=30)
texts = st.lists(words | st.sampled_from([*LINES, *OTHERS]), max_size=6).map(" \n".join)
# Secrets, their halves and the marks of their formats without a space between them, as nobody writes them.
HALVES = [half for _, _, secret, _ in SECRETS for half in (secret[: len(secret) // 2], secret[len(secret) // 2 :])]
FORMATS = [
    "<private>",
    "</private>",
    "-----BEGIN PRIVATE KEY-----",
    "://",
    ":",
    "@",
    "password",
    "token=",
    "'",
    '"',
    "=",
]
joined = st.lists(st.sampled_from([*LINES, *OTHERS, *HALVES, *FORMATS]), min_size=2, max_size=9).map("".join)


@pytest.mark.parametrize(
    ("kind", "before", "secret", "after"), SECRETS, ids=[f"{n} {s[0]}" for n, s in enumerate(SECRETS)]
)
def test_a_secret_is_left_out_and_the_text_around_it_stays(kind: str, before: str, secret: str, after: str) -> None:
    clean = leave_out(f"{before}{secret}{after}")
    assert (clean.text, clean.counts) == (f"{before}[left out: {kind}]{after}", {kind: 1})


@pytest.mark.parametrize("line", OTHERS, ids=range(len(OTHERS)))
def test_what_looks_like_a_secret_stays(line: str) -> None:
    assert leave_out(line) == CleanText(line)


def test_a_key_of_the_service_is_left_out() -> None:
    _, token = make_key("backup")
    assert leave_out(f"curl -H 'X-Key: {token}'").text == "curl -H 'X-Key: [left out: waylore key]'"


@pytest.mark.parametrize(
    "text",
    [
        f'key = "-----BEGIN PRIVATE KEY-----\\n{KEY}\\n-----END PRIVATE KEY-----\\n"',
        f"> -----BEGIN OPENSSH PRIVATE KEY-----\n> {KEY}\n> -----END OPENSSH PRIVATE KEY-----",
        f"-----BEGIN EC PRIVATE KEY-----\n{KEY}\nno end",
        f"-----BEGIN PRIVATE KEY----- and -----BEGIN PRIVATE KEY-----\n{KEY}\n-----END PRIVATE KEY-----",
        f"PuTTY-User-Key-File-2: ssh-rsa\nPrivate-Lines: 2\n{KEY}\nPrivate-MAC: 0123abcd",
    ],
)
def test_a_private_key_is_left_out_to_its_end(text: str) -> None:
    clean = leave_out(text)
    assert clean.counts == {"private key": 1}
    assert not any(line in clean.text for line in KEY.split("\n"))


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a <private>b</private> c <PRIVATE>d</PRIVATE> e", "a [left out: private] c [left out: private] e"),
        ("a <private>b <private>c</private> d</private> e", "a [left out: private] e"),
        ("a <private>b <private>c</private> d", "a [left out: private] d"),
        ("a </private> b", "a </private> b"),
    ],
)
def test_private_parts(text: str, clean: str) -> None:
    assert leave_out(text).text == clean


@pytest.mark.parametrize(
    "text",
    [
        f"DB_PASSWORD: str = '{PASSWORD}'",
        f'{{"db": {{"password": "{PASSWORD}"}}}}',
        f'"{{\\"password\\": \\"{PASSWORD}\\"}}"',
        f"$cfg['passwd'] = '{PASSWORD}';",
        f"export DB_PASSWORD={PASSWORD}\nX=1",
        f"amqp://bob:{PASSWORD}@p@rt@queue:5672/x",
    ],
)
def test_passwords_in_code(text: str) -> None:
    assert PASSWORD not in leave_out(text).text


@pytest.mark.parametrize("before", LINES, ids=range(len(LINES)))
def test_a_secret_within_a_word_is_found_behind_another(before: str) -> None:
    """A private key may end within a word; its mark ends one."""
    for following in LINES:
        clean = leave_out(f"{before}{following}")
        assert leave_out(clean.text) == CleanText(clean.text)


def test_a_token_beside_a_private_key_is_left_out() -> None:
    [key], token = [line for line in LINES if line.startswith("-----BEGIN")], "sk-proj-" + KEY[:40]
    assert leave_out(f"{key.removesuffix('after').strip()}{token}").counts == {"openai key": 1, "private key": 1}
    assert leave_out(f"4539148803436467{key}").counts == {"card number": 1, "private key": 1}


@given(texts | joined)
def test_a_clean_text_stays_as_it_is(text: str) -> None:
    clean = leave_out(text)
    assert leave_out(clean.text) == CleanText(clean.text)


@given(texts | joined, st.data())
def test_offsets_lead_to_the_same_characters(text: str, data: st.DataObject) -> None:
    clean = leave_out(text)
    offsets = Offsets(clean.secrets)
    start = data.draw(st.integers(0, len(clean.text)))
    end = data.draw(st.integers(start, len(clean.text)))
    first, last = offsets.restore(start), offsets.restore(end, is_end=True)
    assert 0 <= first <= last <= len(text)
    assert text[first:last] if start < end else first <= last
    whole = [Secret(s.start - first, s.end - first, s.kind) for s in clean.secrets if first <= s.start < s.end <= last]
    assert clean.text[start:end] in replace_secrets(text[first:last], whole).text
    place = data.draw(st.integers(0, len(text)))
    is_inside = any(secret.start < place < secret.end for secret in clean.secrets)
    assert is_inside or offsets.restore(offsets.move(place)) in (
        place,
        *(s.start for s in clean.secrets if s.end == place),
    )


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "eyJ",
            "-----BEGIN PRIVATE KEY-----\n",
            "<private>",
            "PuTTY-User-Key-File-2: ",
            "://a:",
            "password = '",
            "AAAA",
        ),
        *("4539 ", "sk-", "a@", "authorization: bearer ", "DE89 ", "M", "-us1", "_authToken=", "glpat-", "secret_"),
        "password = '",
    ],
)
def test_a_hostile_text_takes_time_in_proportion_to_its_length(piece: str) -> None:
    def measure(size: int) -> float:
        text = piece * (size // len(piece))
        began = time.process_time()
        leave_out(text)
        return time.process_time() - began

    measure(1_000)  # compiles the patterns
    assert measure(200_000) < 20 * measure(20_000) + 0.5
