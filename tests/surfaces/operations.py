"""A valid request for every operation of the HTTP service: the query or the body, by the id of the operation.

`{document}`, `{passage}` and so on stand for ids, which a test fills in.
"""

from typing import Any

QUERIES = dict.fromkeys(("listFacts", "getTimeline", "getRelated", "listMerges"), "?entity=login")
QUERIES["getConnection"] = "?entity=login&to=Mara"


def make_bodies(secret: str, *, collection: str, author: str) -> dict[str, dict[str, Any]]:
    """Return the bodies; those that add something add the secret."""
    return {
        "putCollection": {"description": "mine now"},
        "addDocument": {"text": f"Planted {secret}."},
        "addFacts": {"facts": [{"subject": secret, "predicate": "is", "object": "planted"}]},
        "markDistinct": {"name": secret, "other": "planted"},
        "rememberMessages": {"messages": [{"role": "user", "content": f"Planted {secret}."}]},
        "forgetDocuments": {"documents": ["{document}"]},
        "verifyReceipt": {"documents": ["{document}"]},
        "searchCollection": {"query": secret},
        "renderContext": {"query": secret},
        "explainHit": {"query": secret, "passage": "{passage}"},
        "createKey": {"name": "more", "collections": [collection], "scope": "admin"},
        "rotateKey": {},
        "uploadFile": {"text": f"Planted {secret}."},
        "importFile": {"subject": secret, "predicate": "is", "object": "planted"},
        "startJob": {"kind": "forget"},
        "quarantineAuthor": {"author": author},
        "releaseAuthor": {"author": author},
        "forgetQuarantined": {"author": author},
    }
