"""The operations of an index on a Qdrant cluster: search candidates, put points, remove them, and count them.

All tenants with vectors of one dimension share a collection of Qdrant. Every query and every count names its tenant,
and the permissions of the caller, in its filter. The weights of words come from the caller. Qdrant's own rarity of
words (its modifier IDF) is not used, because it would count passages of other tenants and hidden ones.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from waylore.store.qdrant.cluster import Cluster
from waylore.store.qdrant.points import Point, make_point_id, place_terms, read_point_id, weigh_terms
from waylore.store.qdrant.queries import (
    MANY_ACCESSES,
    CandidateQuery,
    IndexPlace,
    IndexUnavailable,
    Target,
    VisibleItems,
)

PREFIX = "waylore_"  # of the names of our collections
SEARCH_WIDTH = 400  # hnsw_ef: candidates of a search by the graph of vectors
LINKS = 16  # of a vector in the graph of its tenant
HTTP_NOT_FOUND, HTTP_CONFLICT = 404, 409
Json = dict[str, Any]
EQUAL: Json = {"type": "integer", "lookup": True, "range": False}
ORDERED: Json = {"type": "integer", "lookup": False, "range": True}
FIELDS: Mapping[str, Json] = {  # that filters compare
    "tenant": {"type": "keyword", "is_tenant": True},
    "access": EQUAL,
    "tags": EQUAL,
    "speaker": EQUAL,
    "at": ORDERED,
    "expires": ORDERED,
}


class QdrantIndex:
    """An index on a Qdrant cluster, given by the URLs of its peers, separated by commas."""

    def __init__(self, url: str) -> None:
        self._cluster = Cluster(url)
        self._prepared: set[str] = set()  # collections of Qdrant that have all of their indexes

    def search(self, queries: Sequence[CandidateQuery]) -> list[list[str]]:
        """Return the ids of the best items for each query, in one request for each dimension."""
        found: dict[int, list[str]] = {}
        numbered = sorted(enumerate(queries), key=lambda pair: pair[1].place.dimension)
        for dimension, group in groupby(numbered, key=lambda pair: pair[1].place.dimension):
            asked = list(group)
            answers = self._search(name_collection(dimension), [make_request(query) for _, query in asked])
            for (number, query), answer in zip(asked, answers, strict=True):
                found[number] = [read_point_id(query.place.tenant, point["id"]) for point in answer["points"]]
        return [found[number] for number in range(len(queries))]

    def put(self, place: IndexPlace, points: Sequence[Point]) -> None:
        """Add points or replace them, and wait until the cluster has confirmed it."""
        self.prepare(place)
        body = {"points": [make_point(place, point) for point in points]}
        self._cluster.send("PUT", f"/collections/{name_collection(place.dimension)}/points?wait=true", body)

    def remove(self, place: IndexPlace, items: Sequence[str]) -> None:
        """Remove the points of items in every dimension, and wait until the cluster has confirmed it."""
        self._send_to_all("points/delete?wait=true", {"points": _list_ids(place, items)})

    def remove_tenant(self, tenant: bytes) -> None:
        """Remove all points of a tenant, and wait until the cluster has confirmed it."""
        self._send_to_all("points/delete?wait=true", {"filter": make_filter(tenant, VisibleItems())})

    def find(self, place: IndexPlace, items: Sequence[str]) -> list[str]:
        """Return those of some items that have a point in any dimension."""
        answers = self._send_to_all("points", {"ids": _list_ids(place, items), "with_payload": False})
        return sorted({read_point_id(place.tenant, point["id"]) for points in answers for point in points})

    def count(self, place: IndexPlace) -> int:
        """Count the points of a tenant."""
        body = {"filter": make_filter(place.tenant, VisibleItems()), "exact": True}
        return sum(answer["count"] for answer in self._send_to_all("points/count", body))

    def prepare(self, place: IndexPlace) -> None:
        """Create the collection of a dimension and its indexes, as far as they do not exist."""
        path = f"/collections/{name_collection(place.dimension)}"
        if path in self._prepared:
            return
        try:
            self._cluster.send("PUT", path, describe_collection(place))
        except IndexUnavailable as error:
            if error.status != HTTP_CONFLICT:  # it exists
                raise
        for field, schema in FIELDS.items():
            body = {"field_name": field, "field_schema": schema}
            self._cluster.send("PUT", f"{path}/index?wait=true", body)
        self._prepared.add(path)

    def close(self) -> None:
        """Close every connection."""
        self._cluster.close()

    def _search(self, name: str, searches: Sequence[Json]) -> list[Json]:
        try:
            found: list[Json] = self._cluster.search(f"/collections/{name}/points/query/batch", {"searches": searches})
        except IndexUnavailable as error:
            if error.status == HTTP_NOT_FOUND:
                raise IndexUnavailable(f"the search index has no collection {name} yet", error.status) from error
            raise
        return found

    def _send_to_all(self, path: str, body: Json) -> list[Any]:
        """Send a request to all of our collections of Qdrant, and return the results."""
        return [self._cluster.send("POST", f"{ours}/{path}", body) for ours in self._list_paths()]

    def _list_paths(self) -> list[str]:
        """Return the paths of all of our collections of Qdrant."""
        known = self._cluster.send("GET", "/collections")["collections"]
        return sorted(f"/collections/{one['name']}" for one in known if one["name"].startswith(PREFIX))


def name_collection(dimension: int) -> str:
    """Return the name of the collection of Qdrant for vectors of a dimension."""
    return f"{PREFIX}{dimension}"


def describe_collection(place: IndexPlace) -> Json:
    """Return the parameters of a new collection.

    Vectors are in half precision, in files that are mapped into memory. Each tenant has a graph of its own.
    """
    dense = {"size": place.dimension, "distance": "Cosine", "datatype": "float16", "on_disk": True}
    return {
        "vectors": {target: dense for target in (Target.PASSAGE, Target.NAME) if place.dimension},
        "sparse_vectors": {Target.WORDS: {"index": {"datatype": "float16"}}},
        "hnsw_config": {"m": 0, "payload_m": LINKS},
        "on_disk_payload": True,
        **({"shard_number": place.shards} if place.shards else {}),
        **({"replication_factor": place.replicas} if place.replicas else {}),
    }


# -- requests ------------------------------------------------------------------------------------------


def make_request(query: CandidateQuery) -> Json:
    """Return a query as Qdrant takes it."""
    params = {"exact": True} if query.is_exact else {"hnsw_ef": max(SEARCH_WIDTH, query.limit)}
    return {
        "query": _make_vector(query),
        "using": query.target,
        "filter": make_filter(query.place.tenant, query.visible),
        "params": {} if query.target is Target.WORDS else params,
        "limit": query.limit,
        "with_payload": False,
    }


def _make_vector(query: CandidateQuery) -> Any:
    if query.weights is None:
        return [] if query.vector is None else [float(value) for value in query.vector]
    places = place_terms(query.place.tenant, list(query.weights)).tolist()
    return {"indices": places, "values": list(query.weights.values())}


def make_filter(tenant: bytes, visible: VisibleItems) -> Json:
    """Return the filter of a tenant and a caller, which every query has."""
    must: list[Json] = [{"key": "tenant", "match": {"value": tenant.hex()}}]
    if visible.accesses is not None:
        must.append({"key": "access", "match": {"any": [*visible.accesses, MANY_ACCESSES]}})
    must += [{"key": "tags", "match": {"any": list(tags)}} for tags in visible.tags]
    if visible.speaker is not None:
        must.append({"key": "speaker", "match": {"value": visible.speaker}})
    if visible.since is not None or visible.until is not None:
        must.append({"key": "at", "range": {"gte": visible.since, "lt": visible.until}})
    if visible.said_by is not None:
        undated, before = {"is_empty": {"key": "at"}}, {"key": "at", "range": {"lte": visible.said_by}}
        must.append({"should": [undated, before]})
    if visible.expired_by is None:
        return {"must": must}
    return {"must": must, "must_not": [{"key": "expires", "range": {"lte": visible.expired_by}}]}


def make_point(place: IndexPlace, point: Point) -> Json:
    """Return a point as Qdrant takes it."""
    vectors: Json = {}
    if point.codes is not None:
        target = Target.NAME if point.is_name else Target.PASSAGE
        vectors[target] = np.frombuffer(point.codes, dtype=np.int8).tolist()
    if point.terms:
        places, weights = weigh_terms(place.tenant, point.terms, point.length)
        vectors[Target.WORDS] = {"indices": places, "values": weights}
    values = {"tags": list(point.tags) or None, "at": point.at, "speaker": point.speaker, "expires": point.expires}
    payload: Json = {"tenant": place.tenant.hex(), "access": list(point.accesses)}
    payload |= {name: value for name, value in values.items() if value is not None}
    return {"id": make_point_id(place.tenant, point.id), "vector": vectors, "payload": payload}


def _list_ids(place: IndexPlace, items: Sequence[str]) -> list[str]:
    return [make_point_id(place.tenant, item) for item in items]
