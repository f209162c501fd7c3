"""The kinds of secrets as a table: words that a text with a secret must have, a pattern, and a check of the match.

The formats come from detect-secrets and from documents of services. The library itself is not used: it brings an HTTP
client, reads line by line and does not return the position of a secret. Entropy is not used, because commit hashes and
our own ids look random too. Patterns take linear time: each begins with fixed characters or at the beginning of a word,
and its repetitions are bounded or end there.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from waylore import legacy

Check = Callable[[str], int]  # returns how many characters of a match are the secret; 0 for no secret
_ANY_CASE = re.ASCII | re.IGNORECASE
_BEGIN, _END = r"(?<![A-Za-z0-9_-])", r"(?![A-Za-z0-9])"
_ASSIGN = r"""(?:\\?["'])?\]?\s{0,4}(?::\s{0,4}\w{1,20}\s{0,4}=|:=|=>|==?|:)\s{0,4}(?P<quote>\\?["'`])"""
_QUOTED = r"(?P<secret>(?:(?!(?P=quote))[^\n]){{{},200}})(?P=quote)"
PASSWORD_KEYS = r"(?:password|passwd|passwort|passphrase|pwd)"  # noqa: S105  # nosec B105
_TOKEN_KEYS = r"(?:access|auth|refresh|bearer)[_-]?token"  # noqa: S105  # nosec B105
SECRET_KEYS = rf"(?:api[_-]?key|access[_-]?key|secret[_-]?key|client[_-]?secret|{_TOKEN_KEYS}|secret)"
_ASSIGNED = tuple(
    word + end for word in ("key", "secret", "token") for end in ('"', "'", "\\", "=", ":", " =", " :", "  ")
)
_PLACEHOLDER = re.compile(
    r"[$<{%\[(&].*|\D*(?:passw|passphrase|secret|token|example|your|change.?me|placeholder|redacted|api.?key)\D*"
    r"|[\W_xX0]*|none|null|true|false|string|pass|pw|pwd|user(?:name)?|required|optional|text|hidden|undefined",
    re.IGNORECASE | re.DOTALL,
)
_CARD = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|3[47]\d{13}"
    r"|3(?:0[0-5]|[68]\d)\d{11}|(?:6011|65\d\d|64[4-9]\d|35(?:2[89]|[3-8]\d))\d{12}|62\d{14,17}"
)
_IBAN_LENGTHS = {
    pair[:2]: int(pair[2:])
    for pair in """AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28
    EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30
    KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29
    PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20
    YE30""".split()
}


class Kind(NamedTuple):
    """A kind of secret. Only texts that contain one of `hints`, in lower case, are searched; without hints, all texts.

    The secret is the group `secret` of the pattern, or the whole match. `check` decides about a match.
    """

    name: str
    hints: tuple[str, ...]
    pattern: str
    check: Check = len
    flags: re.RegexFlag = re.ASCII


def is_placeholder(value: str) -> bool:
    """Return whether a value is only a placeholder, such as `${PASSWORD}`, `<password>`, `***` or a label."""
    return _PLACEHOLDER.fullmatch(value) is not None or (" " in value and not any(map(str.isdigit, value)))


def check_password(value: str) -> int:
    """Return the length of a password; 0 for a placeholder."""
    return 0 if is_placeholder(value) else len(value)


def check_token(value: str) -> int:
    """Return the length of a value with letters and digits that is not a placeholder."""
    has_both = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return len(value) if has_both and not is_placeholder(value) else 0


def check_card(found: str) -> int:
    """Return the length of a card number with a valid issuer and check digit (Luhn)."""
    digits = re.sub(r"\D", "", found)
    if not _CARD.fullmatch(digits):
        return 0
    doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits))]
    return 0 if sum(number // 10 + number % 10 for number in doubled) % 10 else len(found)


def check_iban(found: str) -> int:
    """Return the length of an IBAN with the length of its country and a valid check sum; other text may follow."""
    length = _IBAN_LENGTHS.get(found[:2], 0)
    places = [place for place, character in enumerate(found) if character.isalnum()][:length]
    end = places[-1] + 1 if places else 0
    if len(places) < length or found[end : end + 1].isalnum():
        return 0
    own = [str(int(found[place], 36)) for place in places]
    return end if length and int("".join(own[4:] + own[:4])) % 97 == 1 else 0


def _token(name: str, hints: str, pattern: str, check: Check = len) -> Kind:
    """Return a kind whose secrets are whole words."""
    return Kind(name, tuple(hints.split()), f"{_BEGIN}(?:{pattern}){_END}", check)


KINDS = (
    _token("aws key", "akia asia abia acca a3t", r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[A-Z0-9]{16}"),
    Kind(
        "aws key",
        ("secret",),
        r"""secret_?(?:access_?)?key["']?\s{0,4}[:=]\s{0,4}["']?(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])""",
        check_token,
        _ANY_CASE,
    ),
    _token(
        "waylore key", f"waylore_ {legacy.KEY_PREFIX}", rf"(?:waylore_|{legacy.KEY_PREFIX})[0-9a-f]{{16}}_[\w-]{{43}}"
    ),
    _token(
        "github token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_\w{22,255}"
    ),
    _token(
        "gitlab token",
        "glpat- gldt- glft- glsoat- glrt- glcbt- glimt- glptt- glagent- gloas- gr1348941",
        r"gl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas)-[\w.-]{20,999}|GR1348941[\w-]{20,50}",
    ),
    _token("slack token", "xox xapp-", r"xox[abepors]-[A-Za-z0-9-]{10,255}|xapp-\d-[A-Za-z0-9-]{10,255}"),
    Kind("slack webhook", ("hooks.slack.com",), r"hooks\.slack\.com/[a-z]{5,20}/(?P<secret>[A-Za-z0-9+/]{20,255})"),
    Kind("discord webhook", ("/api/webhooks/",), r"/api/webhooks/(?P<secret>\d{10,25}/[\w-]{40,100})"),
    Kind("discord token", (), r"[MNO](?<![\w-].)[\w-]{23,25}\.[\w-]{6}\.[\w-]{27,38}(?![\w-])", check_token),
    _token("telegram token", ":aa", r"\d{8,10}:AA[\w-]{33}"),
    _token(
        "stripe key", "_live_ _test_ whsec_", r"[rs]k_(?:live|test)_[0-9A-Za-z]{16,255}|whsec_[A-Za-z0-9+/]{24,255}"
    ),
    _token("google key", "aiza gocspx- ya29.", r"AIza[\w-]{35}|GOCSPX-[\w-]{20,40}|ya29\.[\w-]{20,999}"),
    _token("openai key", "sk-", r"sk-[A-Za-z0-9]{32,255}|sk-(?:proj|svcacct|admin|None)-[\w-]{20,255}", check_token),
    _token("anthropic key", "sk-ant-", r"sk-ant-[\w-]{20,255}", check_token),
    _token("api key", "sk-or- gsk_ xai- pplx- r8_", r"sk-or-v\d-\w{32,99}|(?:gsk_|xai-|pplx-|r8_)[A-Za-z0-9]{32,99}"),
    _token("hugging face token", "hf_", r"hf_[A-Za-z0-9]{30,99}"),
    _token("npm token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    Kind("npm token", ("_authtoken",), r"_authToken\s{0,4}=\s{0,4}(?P<secret>[^\s\"']{8,255})", check_password),
    _token("pypi token", "pypi-age", r"pypi-AgE[\w-]{50,999}"),
    _token("rubygems key", "rubygems_", r"rubygems_[0-9a-f]{48}"),
    _token("sendgrid key", "sg.", r"SG\.[\w-]{22}\.[\w-]{43}"),
    Kind("twilio key", (), r"[SA](?<![\w-].)[KC][0-9a-f]{32}(?!\w)"),
    _token("mailchimp key", " ".join(f"-us{digit}" for digit in range(1, 10)), r"[0-9a-f]{32}-us\d{1,2}"),
    _token("mailgun key", "key-", r"key-[0-9a-f]{32}"),
    _token("square token", "sq0", r"sq0(?:csp|atp|idp)-[\w-]{22,43}"),
    _token("shopify token", "shp", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    _token("digitalocean token", "_v1_", r"do[opr]_v1_[0-9a-f]{64}"),
    _token("docker token", "dckr_pat_", r"dckr_pat_[\w-]{20,99}"),
    _token("atlassian token", "atatt3 atctt3", r"AT[AC]TT3[\w=-]{20,255}"),
    _token("databricks token", "dapi", r"dapi[0-9a-f]{32}(?:-\d)?"),
    _token("vault token", "hvs. hvb. hvr.", r"hv[sbr]\.[\w-]{24,255}"),
    _token("grafana token", "glsa_ glc_", r"gl(?:sa|c)_[\w+/=]{32,255}"),
    _token("artifactory key", "akcp cmvmdgtu", r"AKCp[A-Za-z0-9]{10,99}|cmVmdGtu[A-Za-z0-9]{56}"),
    _token("postman key", "pmak-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    _token("new relic key", "nrak-", r"NRAK-[A-Z0-9]{27}"),
    _token("linear key", "lin_api_", r"lin_api_[A-Za-z0-9]{40}"),
    _token("notion token", "ntn_ secret_", r"ntn_[A-Za-z0-9]{40,60}|secret_[A-Za-z0-9]{43}", check_token),
    _token("age key", "age-secret-key-", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    Kind("azure key", ("accountkey=",), r"AccountKey=(?P<secret>[A-Za-z0-9+/]{86}==)"),
    Kind("azure signature", ("sig=",), r"[?&]sig=(?P<secret>[A-Za-z0-9%+/]{43,128}(?:=|%3D)?)", check_token),
    _token("web token", "eyj", r"eyJ[\w-]{10,4096}\.eyJ[\w-]{10,65536}\.[\w-]{10,4096}"),
    Kind(
        "token",
        ("authorization",),
        r"""authorization\\?["']?\s{0,4}[:=,]\s{0,4}\\?["'`]?(?:basic|bearer|token)\s{1,4}(?P<secret>[\w+/=.~-]{16,4096})""",
        check_token,
        _ANY_CASE,
    ),
    Kind(
        "password",
        ("://",),
        r"""://[^\s/?#@:"'`<>]{0,255}:(?P<secret>[^\s/?#"'`<>]{1,255})@(?=[\w\[.-])""",
        check_password,
    ),
    Kind(
        "password",
        ("passw", "passphrase", "pwd"),
        PASSWORD_KEYS + _ASSIGN + _QUOTED.format(4),
        check_password,
        _ANY_CASE,
    ),
    Kind("secret", _ASSIGNED, SECRET_KEYS + _ASSIGN + _QUOTED.format(16), check_token, _ANY_CASE),
    Kind(
        "secret",
        ("password=", "passwd=", "secret=", "token=", "key="),
        r"^(?:export )?[A-Z0-9_]{0,60}(?:PASSW(?:OR)?D|SECRET|TOKEN|API_?KEY|ACCESS_KEY)="
        r"(?P<secret>[^\s\"']{8,255})$",
        check_token,
        re.ASCII | re.MULTILINE,
    ),
    Kind(
        "card number",
        (),
        r"[2-6](?<![\w.-].)\d{3}(?:\d{9,15}|(?P<gap>[ \u00a0-])(?:\d{4}(?P=gap)\d{4}(?P=gap)\d{4}"
        r"|\d{6}(?P=gap)\d{4,5}))(?![\w-]|[.,]\d)",
        check_card,
    ),
    Kind("iban", (), r"[A-Z](?<![\w-].)[A-Z]\d{2}(?:[ \u00a0]?[A-Z0-9]){11,29}", check_iban),
)
