"""Pin the images of deploy/ to digests: `python -m tools.supply.images --registry ADDRESS`.

A tag can be moved to another image, a digest cannot. For each image that deploy/Dockerfile and deploy/compose.yaml
name, the registry is asked for the digest of its tag, which is then written behind the tag. `--check` asks nobody and
fails if a digest is missing. The address of the registry is not written anywhere.
"""

import argparse
import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx

DEPLOY = Path(__file__).parents[2] / "deploy"
FILES = (DEPLOY / "Dockerfile", DEPLOY / "compose.yaml")
IMAGE = re.compile(
    r"^(?P<before>ARG \w+=|FROM (?:--\S+ )*|\s+image: )(?P<name>[a-z\d][a-z\d./_-]*):(?P<default>\$\{\w+:-)?"
    r"(?P<tag>[\w.-]+)(?P<digest>@sha256:[\da-f]{64})?(?=\}|\s|$)",
    re.MULTILINE,
)
MANIFEST_TYPES = ", ".join(
    f"application/vnd.{kind}+json"
    for kind in (
        "oci.image.index.v1",
        "docker.distribution.manifest.list.v2",
        "oci.image.manifest.v1",
        "docker.distribution.manifest.v2",
    )
)
CHALLENGE = re.compile(r'(\w+)="([^"]*)"')


class RegistryError(Exception):
    """The registry did not give a digest that can be trusted."""


def find_unpinned(text: str) -> list[str]:
    """Return the images of a file that have no digest."""
    return [f"{one['name']}:{one['tag']}" for one in IMAGE.finditer(text) if not one["digest"]]


def ask_digest(client: httpx.Client, name: str, tag: str) -> str:
    """Return the digest of a tag: the SHA-256 of the manifest, which for several platforms lists their manifests."""
    repository = name if "/" in name else f"library/{name}"
    address = f"/v2/{repository}/manifests/{tag}"
    answer = client.get(address, headers={"Accept": MANIFEST_TYPES})
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        authorization = f"Bearer {ask_token(client, answer.headers.get('WWW-Authenticate', ''))}"
        answer = client.get(address, headers={"Accept": MANIFEST_TYPES, "Authorization": authorization})
    if answer.status_code != httpx.codes.OK:
        raise RegistryError(f"the registry answered {answer.status_code} for {name}:{tag}")
    digest = f"sha256:{hashlib.sha256(answer.content).hexdigest()}"
    if answer.headers.get("Docker-Content-Digest", digest) != digest:
        raise RegistryError(f"the manifest of {name}:{tag} does not have the digest that the registry names")
    return digest


def ask_token(client: httpx.Client, challenge: str) -> str:
    """Get a token for reading, without an account, from the address that the registry names."""
    named = dict(CHALLENGE.findall(challenge))
    realm = named.pop("realm", "")
    if not challenge.startswith("Bearer ") or urlsplit(realm).scheme != client.base_url.scheme:
        raise RegistryError("the registry asks for an account; choose one that can be read without")
    answer = client.get(realm, params=named).raise_for_status().json()
    return str(answer.get("token") or answer["access_token"])


def pin_images(text: str, client: httpx.Client) -> str:
    """Return a file with the newest digest behind each tag."""

    def write_digest(found: re.Match[str]) -> str:
        digest = ask_digest(client, found["name"], found["tag"])
        return f"{found['before']}{found['name']}:{found['default'] or ''}{found['tag']}@{digest}"

    return IMAGE.sub(write_digest, text)


def check_images() -> Iterator[str]:
    """Yield the images of the committed files that have no digest."""
    for path in FILES:
        yield from (f"{path.name}: {image} has no digest" for image in find_unpinned(path.read_text("utf-8")))


def main() -> None:
    """Pin the images, or check that they are pinned."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--registry", help="the address of a registry that has these images, such as https://HOST")
    asked.add_argument("--check", action="store_true", help="write nothing; fail if a digest is missing")
    chosen = parser.parse_args()
    if chosen.registry:
        try:
            with httpx.Client(base_url=chosen.registry, timeout=60, follow_redirects=True) as client:
                pinned = {path: pin_images(path.read_text("utf-8"), client) for path in FILES}
        except (RegistryError, httpx.HTTPError) as error:
            sys.exit(f"no image was pinned: {error}")
        for path, text in pinned.items():
            path.write_text(text, "utf-8")
    if missing := list(check_images()):
        sys.exit("\n".join([*missing, "run `just pin-images https://REGISTRY`"]))


if __name__ == "__main__":
    main()
