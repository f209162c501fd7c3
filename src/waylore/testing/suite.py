"""All tests of the Store protocol as one class, for authors of stores.

Subclass `StoreConformance` and define one fixture, `open_store`. It returns a function that opens a collection
by name, in a database of the test's own:

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def open_store(self, tmp_path):
            return lambda collection: MyStore(tmp_path / "db", collection)

While a store is being written, subclass one of the parts instead, such as `WritingTests`. The tests cover every
method and every filter of the protocol. They do not kill processes or fill disks. They need pytest.
"""

from waylore.testing.assertions import AssertionTests
from waylore.testing.audit import AuditTests
from waylore.testing.authors import AuthorTests
from waylore.testing.calls import CallTests
from waylore.testing.collections import CollectionTests
from waylore.testing.expiry import ExpiryTests
from waylore.testing.fetching import FetchingTests
from waylore.testing.filters import FilterTests
from waylore.testing.forgetting import ForgettingTests
from waylore.testing.graph import GraphTests
from waylore.testing.scopes import ScopeTests
from waylore.testing.searching import SearchingTests
from waylore.testing.turns import TurnTests
from waylore.testing.writing import WritingTests


class StoreConformance(
    WritingTests,
    ForgettingTests,
    SearchingTests,
    GraphTests,
    AssertionTests,
    FetchingTests,
    FilterTests,
    ScopeTests,
    TurnTests,
    ExpiryTests,
    AuthorTests,
    AuditTests,
    CallTests,
    CollectionTests,
):
    """Every test of the Store protocol. A subclass defines the fixture `open_store`."""
