"""Secrets that are made up here, so that no file of the repository has one, and lines that look like some."""

import string
from random import Random

_RANDOM = Random(20)
LETTERS = string.ascii_letters + string.digits


def make(length: int, alphabet: str = LETTERS) -> str:
    """Return random characters, at least one of them a digit."""
    return "".join(_RANDOM.choice(alphabet) for _ in range(length - 1)) + "7"


def make_hex(length: int) -> str:
    return make(length, "0123456789abcdef")


PASSWORD = make(9)
KEY = make(64) + "\n" + make(40)

# kind, what comes before, the secret, what comes after
SECRETS: list[tuple[str, str, str, str]] = [
    ("aws key", "aws_access_key_id = ", "AKIA" + make(16, string.ascii_uppercase + string.digits), ""),
    ("aws key", "aws_secret_access_key = '", make(40), "'"),
    ("github token", "token: ", "ghp_" + make(36), ""),
    ("gitlab token", "CI has ", "glpat-" + make(20), " now"),
    ("slack token", "xoxb: ", "xoxb-1234567890-1234567890123-" + make(24), ""),
    ("stripe key", "pay with ", "sk_live_" + make(24), "."),
    ("google key", "maps?key=", "AIza" + make(35), "&x=1"),
    ("openai key", "OPENAI ", "sk-proj-" + make(20) + "T3BlbkFJ" + make(20), ""),
    ("npm token", "publish with ", "npm_" + make(36), ""),
    ("pypi token", "", "pypi-AgEIcHlwaS5vcmc" + make(80), ""),
    ("sendgrid key", "mail by ", "SG." + make(22) + "." + make(43), ""),
    ("web token", "Authorization: Bearer ", "eyJ" + make(30) + ".eyJ" + make(60) + "." + make(43), ""),
    ("mailchimp key", "list ", make_hex(32) + "-us14", ""),
    ("twilio key", "calls ", "SK" + make_hex(32), ""),
    ("telegram token", "bot ", "123456789:AA" + make(33), ""),
    ("azure key", "AccountKey=", make(86) + "==", ";EndpointSuffix"),
    ("password", 'password = "', PASSWORD, '"'),
    ("password", "postgresql://bob:", PASSWORD, "@db.example.com/sales"),
    ("card number", "card ", "4539 1488 0343 6467", " until 12/29"),
    ("card number", "Amex ", "3782-822463-10005", ""),
    ("iban", "pay to ", "DE89 3704 0044 0532 0130 00", " BIC COBADEFF"),
    ("waylore key", "use ", "waylore_" + make_hex(16) + "_" + make(43), ""),
    ("private key", "", f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}\n-----END RSA PRIVATE KEY-----", "\nafter"),
    ("private", "I said ", "<private>my diagnosis</private>", " there"),
]
OTHERS = [
    "a PRIVATE KEY begins with a line of its own, as does a PuTTY-User-Key-File",
    f"commit {make_hex(40)}",
    "uuid 550e8400-e29b-41d4-a716-446655440000",
    f"document {make_hex(32)} of ours",
    f"sha256:{make_hex(64)}",
    f"data:image/png;base64,iVBORw0KGgo{make(120)}==",
    "+49 30 901820 and (555) 123-4567",
    "ISBN 978-3-16-148410-0",
    "order 1234 5678 9012 3456",
    "version 4.1111.1111.1111",
    "written at 1700000000000000 microseconds",
    "password = os.environ['DB_PASSWORD']",
    'password = "${DB_PASSWORD}"',
    '"password": "Passwort"',
    "postgresql://user:password@host/db",
    "https://host:8080/a@b",
    f"-----BEGIN CERTIFICATE-----\n{KEY}\n-----END CERTIFICATE-----",
    f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{make(43)}",
    "class sk-toggleable__content-fitted and task-list-item-checkbox",
    "DE12 3456 7890 1234 5678 90",
    "the token is a word; the secret: none",
    f'integrity="sha512-{make(86)}=="',
    'api_key = "<your api key>"',
    "The tag <private> is not closed",
    "-----BEGIN PRIVATE KEY----- is the first line of a key",
]
