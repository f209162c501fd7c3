"""Change requests of schemathesis that the service refuses for a reason that a schema cannot express.

These are an `Idempotency-Key` of an earlier, different request, a fact that ends before it begins, a file without a
reader, and messages of which none has a text.
"""

import re
from typing import Any
from uuid import uuid4

import schemathesis

WORD = re.compile(r"[!-~]{1,200}")


@schemathesis.hook
def before_call(_context: Any, case: Any, _kwargs: dict[str, Any]) -> None:
    for name, word in list((case.headers or {}).items()):
        if name.lower() == "idempotency-key" and WORD.fullmatch(str(word)):
            case.headers[name] = f"{word}{uuid4().hex}"
    uri = (case.path_parameters or {}).get("uri")
    if isinstance(uri, str) and case.method == "PUT":
        case.path_parameters["uri"] = f"{uri.replace('.', '')}.md"
    facts = case.body.get("facts") if isinstance(case.body, dict) else None
    for fact in facts if isinstance(facts, list) else []:
        if isinstance(fact, dict) and fact.get("valid_from") and fact.get("valid_to"):
            fact["valid_to"] = None
    messages = case.body.get("messages") if isinstance(case.body, dict) else None
    if isinstance(messages, list) and messages:
        case.body["messages"] = [*messages, {"role": "user", "content": "Mara likes tea."}]
