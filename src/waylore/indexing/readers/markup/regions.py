"""Find the main part, boilerplate and table of contents of an HTML page, by tags, roles and class names.

Each element is judged alone, without other pages of the site. The module reads no text.
"""

import re
from collections.abc import Mapping
from typing import Literal

Region = Literal["", "main", "boilerplate", "contents"]

_BOILERPLATE_TAGS = {"nav", "aside", "footer", "form"}  # also a header outside of main and article
_BOILERPLATE_ROLES = {"navigation", "contentinfo", "complementary", "search", "banner"}
_NEVER = {"html", "body", "main", "article"}
# Names that site generators give to links between pages, such as `docnav`, `nav-top` and `navfooter`.
_NAVIGATION = re.compile(
    r"(?:\w{2,8}[-_]?)?nav(?:bar|igation|header|footer|links)?(?:[-_]?(?:top|bottom|header|footer|links|list))?"
    r"|bread-?crumbs?|pagination|(?:site|page)?-?(?:footer|banner)|skip-?(?:link|nav)",
    re.IGNORECASE,
)
_CONTENTS = {"toc", "tableofcontents", "table-of-contents"}


def find_region(tag: str, attributes: Mapping[str, str], *, is_inside_main: bool) -> Region:
    """Return the part of a page that begins with an element; an empty string if it belongs to the part around it."""
    role = attributes.get("role")
    if tag == "main" or role == "main":
        return "main"
    if tag in _BOILERPLATE_TAGS or role in _BOILERPLATE_ROLES or (tag == "header" and not is_inside_main):
        return "boilerplate"
    names = f"{attributes.get('class', '')} {attributes.get('id', '')}".split()
    if not names or tag in _NEVER:
        return ""
    if any(map(_NAVIGATION.fullmatch, names)):
        return "boilerplate"
    return "contents" if any(name.lower() in _CONTENTS for name in names) else ""
