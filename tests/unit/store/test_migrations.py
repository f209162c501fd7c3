"""Migrations: order, records, checksums, and schemas that are refused."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.errors import SchemaOutdated
from waylore.store.sql import Migration, is_current, load_migrations, migrate

THREE = [Migration(1, "first", "one;"), Migration(2, "second", "two;"), Migration(3, "third", "three;")]
# The SQL of a migration never changes after a release, because databases were made by it. To change a schema,
# add a migration, and its checksum here: `load_migrations(…)[-1].checksum`.
RELEASED = {
    ("waylore.store.sqlite", ""): [
        "a3cdbd728312f8e3cf4ccfa0b20e4635f93a7088e2c7b1933dcf6640595b35e0",
        "429a0c52a6b39abc374535e30433119f703e91d090db93701e8ab2c9af6f3f74",
        "8c629cb0ba5c59184461332d19b4363b1cf9756be1a6e9e67963165e7a13bcbb",
        "cd0b96d5ecab1b137bb6b5506ba71335daa59a8e982aad6299920b3e401ad1e1",
        "ee80ab9f84e505dc57b755172a5fc376d9d53e683fa8862b85b769e33fd0ed42",
        "ec84762466a9a7f8f7f1ca5b0c1e58f41ce1154f2b74d5147feccf9c7be897e3",
        "a7ea15b4748fef2676ce0282bddf77e95232a67dd36202c6373b0c6f2184ffd6",
        "0ca4e9f4963e1a163449f97cd04c70ac566d54e2148a62b47c77b65a4fe9551f",
        "76f28efc671226e1f4494ef577136451f43e8366a04ccff26ee831b883f5e7a6",
        "32c384590948a9527115b4db4503c25d069700694c2e847e185ff85b457875d6",
        "30414d3719c2aaca03694fff73da0d44fb72c83e49623807f35466f1ab50c0f2",
        "da2aa2df052252d968beaf0d55baaef1872a493b8ffcf2108065f9380f08807d",
        "76674442c7dc0bad7da49ddcee54211628d6e7ac65ad3cbdc1738ba84dae0ddf",
        "6972bc5d97bce72dd0fa9b020ce90a713e33d089e6ae3123c979ab6f3fff9423",
        "c34f8d6300c0b69dc1a46c817160830ed6ed8c899b528adf4e699e922ce2dd77",
    ],
    ("waylore.store.postgres", ""): [
        "cc3dee3fd1cbd99360c279ef6cc65d2b3f42cb2e5deb7cd19794f63c33db0de7",
        "9e381d149c56abf15c7d60121ae1e8128d35ca14b2884119c947e9df8486801d",
        "b7e900e77c8e229790ab61f8fa6df0b3761bee366f7619157751aed7512aba75",
        "9ed857fed20c542463df033eedf91913d22fd66cb83ba41f4e6ab6e71dfea85b",
        "733c2fa27bd19bfb19d297daee738a42bf822259350ca032cfe871751993e1aa",
        "cff661b17325fedd645ca054aa0078420d7afaff4ab8800c94745dc128992dee",
        "298151a41ad00054a734f49713f0ec4b2c12225ed919b215d159754e56277f29",
        "e150cf617be59532a61410d21d15e38518418bf424b4da08ba2dea5d66dc9aca",
        "c39930c6e6b083d9f107c59d747ef015eb16fc793dc5c4ccd48881e4f9af1c5a",
        "8a6f6106aeff00207dc5543a49ef1598a4164b887cc36038edafb1b597bbd7c2",
        "d20aa48786d7fa35104a032ce0ee6f883f7dd9f0f8a716201793b9ec50a7fdce",
        "cde13fd013f7c7ebbafab3195c9f4622afe3eb209e390ab6caa9b3fd492a2d92",
        "fe06bc49a41967016c0cea85ce1576b690d877789681cb8e545b2c89a8c2e23e",
        "f9619263858c90c078999429f5a1790b922a4313960c4d057dba6e3351008774",
        "79cec9935bec7c0aad9e3cbc3feab35c5cf7790058882a001b10f1ce28be4424",
        "dc5ee53f1d502c86788428c04b56f906bd51ec9f60db6a3230567d2cbd78fd72",
    ],
    ("waylore.cells.catalogue", "sqlite"): [
        "4f7e6782866bd57cb3d748424186ee2c7e3cfccb624288692e5fc60abe991891",
        "257f53701e4870255b03134615128aaec1693af10b0a2ba38444b79772708a86",
    ],
    ("waylore.cells.catalogue", "postgres"): [
        "ae153676790576decf41ba453ce897714c09b61a1209bae745438e9655dacd6f",
        "8d804c45aee8fde10e259dc8758b0664a19a98a67f13a361db219dd64e4b3268",
        "85a44f5947169844547b6f09d94ce4278023d2d0aa21e568492034be4a8dc182",
    ],
    ("waylore.service.registry", "sqlite"): [
        "8a2fd3b22edddb927d0eb416fed5b36b6dff06fd7401161f38cc066d4333c137",
        "9d63c0bab77baf02557dbd827b3bcace0196600bec3a76a82dea5d02ad72bcb4",
        "fcd765162ff79f11105fafcdfb9f7788b8c654cd827d4efa286cf28697a82191",
        "084dca70f3f17f4ff8beb4eaa1dab6eb4c07c451182e137c14da2eca323da56d",
    ],
    ("waylore.service.registry", "postgres"): [
        "49056bc2074faf403785e72ea02e7a9652b9c85a4b8f88376a2f33817e080bc4",
        "1c9fe508e4e9a815e74b911aad95cf441a7f643a857ad9a2a9412e51a4915b8f",
        "954cf8f3585b78f5e85f9ab5ff479db13c4718ae7389a4fadcf03935233fe178",
        "c87e5d2e1fff50a90939d391db3ecd225dec039b7dafe652fee74e42af0208a1",
        "341e9cbb179ee4175b8f25e201ae0dae33e021178f8853e4b6f9c588f9029b9c",
        "ec36746709241f421c711746efa37c1fa41104865380495d897ae3b1aa853354",
    ],
    ("waylore.service.jobs", "postgres"): [
        "d102c411d6137d618383f653bb6409b032fae516e1840f381e14cb54655f6007",
        "ade7fa2e361d4eebd5cd710c28cde9b205430ae257da9f8afc0c5432c57daf06",
        "6ea14584877a6d16a680d75fed2f61714ee9d7592fd9244c81c5cff01e117552",
    ],
}


@dataclass
class Database:
    """Records the statements that it runs, and the checksums of applied migrations."""

    done: list[str] = field(default_factory=list)
    applied: dict[int, str] = field(default_factory=dict)
    refuses: str = ""

    def run(self, sql: str) -> None:
        if sql == self.refuses:
            raise RuntimeError(sql)
        self.done.append(sql)

    def record(self, migration: Migration) -> None:
        self.done.append(migration.name)
        self.applied[migration.number] = migration.checksum

    def migrate(self, migrations: list[Migration]) -> int:
        return migrate(migrations, applied=dict(self.applied), run=self.run, record=self.record)


def build_database(migrations: list[Migration]) -> Database:
    return Database(applied={migration.number: migration.checksum for migration in migrations})


def test_migrations_run_and_are_recorded_in_order() -> None:
    database = Database()
    assert database.migrate(THREE) == 3
    assert database.done == ["one;", "first", "two;", "second", "three;", "third"]
    assert is_current(THREE, database.applied)


@given(st.sets(st.integers(1, 3)))
def test_missing_migrations_are_applied_once(applied: set[int]) -> None:
    database = build_database([m for m in THREE if m.number in applied])
    assert is_current(THREE, database.applied) == (applied == {1, 2, 3})
    assert database.migrate(THREE) == 3 - len(applied)
    assert database.done == [step for n, name, sql in THREE if n not in applied for step in (sql, name)]
    assert database.migrate(THREE) == 0
    assert database.applied.keys() == {1, 2, 3}


def test_newer_schema_raises_error_with_remedy() -> None:
    database = build_database([*THREE, Migration(4, "fourth", "four;")])
    with pytest.raises(SchemaOutdated, match=r"schema 4, .* knows 3: upgrade Waylore"):
        database.migrate(THREE)
    assert database.done == []


def test_failed_migration_is_not_recorded() -> None:
    database = Database(refuses="two;")
    with pytest.raises(RuntimeError, match="two"):
        database.migrate(THREE)
    assert database.applied.keys() == {1}


def test_schema_from_other_sql_raises_error() -> None:
    database = build_database([THREE[0], Migration(2, "second", "another;")])
    with pytest.raises(SchemaOutdated, match=r"migration 2 \(second\) .* import the export into a new store"):
        database.migrate(THREE)
    assert database.done == []


def test_missing_checksums_are_recorded_without_running_sql() -> None:
    database = Database(applied={1: "", 2: THREE[1].checksum, 3: ""})
    assert not is_current(THREE, database.applied)
    assert database.migrate(THREE) == 0
    assert database.done == ["first", "third"]
    assert is_current(THREE, database.applied)


def test_checksum_ignores_comments_and_white_space() -> None:
    plain = Migration(1, "a", "CREATE TABLE a (b);").checksum
    assert Migration(1, "a", "-- A table.\nCREATE TABLE a\n  (b);  -- with b\n").checksum == plain
    assert Migration(1, "a", "CREATE TABLE a (c);").checksum != plain


@pytest.mark.parametrize(("package", "dialect"), RELEASED)
def test_released_migrations_are_unchanged(package: str, dialect: str) -> None:
    assert [migration.checksum for migration in load_migrations(package, dialect)] == RELEASED[package, dialect]
