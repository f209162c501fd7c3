"""An index on a cluster of three Qdrant peers, one of which is killed while documents are written and searched."""

from contextlib import closing

import pytest
from tools.qdrant.server import start_cluster
from tools.waiting import wait_until

from databases import get_server_url, make_name
from store.drawn import WORDS
from store.test_qdrant import search_all
from waylore import Filter
from waylore.errors import StoreUnavailable
from waylore.store.partial import partial_answers
from waylore.store.postgres.candidates.admin import IndexAdmin
from waylore.store.postgres.store import PostgresStore
from waylore.testing.world import MODEL, page
from waylore.types.author import OWNER

PAGES = 60


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_lost_peer_is_replaced_and_comes_back() -> None:
    """The peer that clients ask is killed. Others answer, every document arrives, and all peers agree afterwards."""
    name = make_name("cluster")
    with (
        start_cluster(3) as peers,
        closing(PostgresStore(get_server_url(), name)) as store,
        closing(IndexAdmin(get_server_url(), name)) as admin,
    ):
        store.write([page(f"falcon {WORDS[n % 12]} {n}") for n in range(PAGES)], author=OWNER, model=MODEL)
        expected = search_all(store, "falcon harbour", Filter())
        admin.create(",".join(peer.url for peer in peers), shards=6, replicas=2)
        assert list(admin.feed())[-1].is_done
        assert search_all(store, "falcon harbour", Filter()) == expected
        peers[0].kill()
        for n in range(10):
            store.write([page(f"zeppelin {n}")], author=OWNER, model=MODEL)
            with partial_answers() as left_out:
                assert len(store.lexical("zeppelin", top_k=99)) == n + 1
            assert not left_out  # another peer has answered
        wait_until(lambda: admin.read_status().pending == 0, seconds=240)
        peers[0].start()
        wait_until(lambda: is_equal_everywhere(store), seconds=240)
        status = admin.read_status()
        assert status.points == status.items


def is_equal_everywhere(store: PostgresStore) -> bool:
    """Return whether the index finds the same through each peer."""
    [index] = store._indexes._opened.values()
    answers = []
    for number in range(3):
        index._cluster._preferred = number
        with partial_answers() as left_out:
            try:
                answers.append(search_all(store, "falcon zeppelin", Filter()))
            except StoreUnavailable:
                return False
        if left_out or index._cluster._preferred != number:
            return False
    return answers[1:] == answers[:-1]
