"""Files of URLs are listed, known by their version, grouped and fetched."""

from contextlib import closing
from pathlib import Path

import pytest

from loading.loads import make_job
from waylore.errors import ConfigError, NotFound
from waylore.indexing.files.addresses import Address
from waylore.indexing.files.compare import KnownFile, compare_file
from waylore.indexing.loading.job import Piece
from waylore.indexing.loading.sources import FoundFiles, fetch, find_files, group_files, look_up
from waylore.store.sqlite.store import SqliteStore
from waylore.types.author import OWNER


def test_url_is_listed_and_files_without_a_reader_are_skipped(tmp_path: Path) -> None:
    for name in ("b.md", "a.jsonl", "deep/c.md", "picture.png"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text('{"text": "x"}', "utf-8")
    task = make_job(tmp_path, "unused").task
    found = find_files(f"file://{tmp_path}", task)
    assert list(found.urls) == [f"file://{tmp_path}/{name}" for name in ("a.jsonl", "b.md", "deep/c.md")]
    assert [each.reason for each in found.skipped.reported] == ["there is no reader for .png files"]
    assert (found.count, found.bytes) == (3, 39)
    assert list(find_files(f"file://{tmp_path}/*.md", task).urls) == [f"file://{tmp_path}/b.md"]


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("file:///no/such/folder", NotFound, "no files at"),
        ("nonsense://bucket/a", ConfigError, "cannot be opened"),
    ],
)
def test_wrong_url_names_the_remedy(tmp_path: Path, url: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        find_files(url, make_job(tmp_path, "unused").task)


def test_file_with_the_same_version_is_unchanged_without_being_fetched(tmp_path: Path) -> None:
    job, url = make_job(tmp_path, "unused"), "s3://bucket/a%b.md"
    found = FoundFiles(urls={url: {"size": 5, "ETag": "one"}})
    with closing(SqliteStore(tmp_path / "a.waylore")) as store:
        [file] = look_up(found, [store], job.task)
        read = compare_file(file, job.task, job.stamp)
        assert (file.addresses[0].uri, read.is_unchanged) == ("s3://bucket/a%25b.md", False)
        fingerprints = {file.addresses[0].uri: str(read.fingerprint)}
        store.write([], author=OWNER, model=None, fingerprints=fingerprints)
        [same] = look_up(found, [store], job.task)
        [other] = look_up(FoundFiles(urls={url: {"size": 5, "ETag": "two"}}), [store], job.task)
    assert compare_file(same, job.task, job.stamp).is_unchanged
    assert not compare_file(other, job.task, job.stamp).is_unchanged


def test_file_is_complete_only_if_every_store_has_it(tmp_path: Path) -> None:
    job, url = make_job(tmp_path, "unused"), "s3://bucket/a.md"
    found = FoundFiles(urls={url: {"size": 5, "ETag": "one"}})
    with closing(SqliteStore(tmp_path / "a.waylore")) as one, closing(SqliteStore(tmp_path / "b.waylore")) as two:
        [file] = look_up(found, [one, two], job.task)
        fingerprint = str(compare_file(file, job.task, job.stamp).fingerprint)
        for store, is_complete in ((one, False), (two, True)):
            store.write([], author=OWNER, model=None, fingerprints={url: fingerprint})
            [file] = look_up(found, [one, two], job.task)
            assert compare_file(file, job.task, job.stamp).is_unchanged is is_complete


def test_copy_of_a_url_has_its_suffix_and_is_removed(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A", "utf-8")
    file = KnownFile(Path("a.md"), 3, (Address("a", "url"),), {}, url=f"file://{tmp_path}/a.md")
    with fetch(Piece(file)) as path:
        assert (path.read_text("utf-8"), path.suffix) == ("# A", ".md")
    assert not path.exists()
    missing = KnownFile(Path("b.md"), 3, (Address("b", "url"),), {}, url=f"file://{tmp_path}/b.md")
    with pytest.raises(FileNotFoundError), fetch(Piece(missing)):
        pass


def test_groups_have_a_limit_of_bytes() -> None:
    files = [KnownFile(Path(f"{n}.md"), size, (), {}) for n, size in enumerate([10, 20, 80, 500, 10])]
    groups = [[file.size for file in group] for group in group_files(files, 100)]
    assert groups == [[10, 20], [80], [500], [10]]
