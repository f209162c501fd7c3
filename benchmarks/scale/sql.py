"""The SQL of `benchmarks.scale.multiply`: turn the rows of a sample into those of all copies and tenants.

`grain` is the number of copies that share an item. The item is written with the first of these copies, and its
counters count all of them. Copies are numbered from `first` to before `end`; `sample.copies` has those of one piece.
"""

# The steps that are done, so that an interrupted run continues behind them. This table stays.
CREATE_STEPS = """
    CREATE SCHEMA IF NOT EXISTS sample;
    CREATE TABLE IF NOT EXISTS sample.steps (
      step text PRIMARY KEY, seconds float8 NOT NULL, processor float8 NOT NULL, passages int8 NOT NULL)
"""

# Copies the rows of the first tenant, with the grain of the items that they refer to.
CREATE_SAMPLE = [
    *(
        f"CREATE TABLE sample.{table} AS SELECT * FROM {table}"
        for table in (
            "collections accesses documents document_tags passages passage_vectors passage_terms terms entities entity_vectors "
            "profiles names entity_keys mentions packs statement_vectors edges term_counts entity_counts"
        ).split()
    ),
    "CREATE TABLE sample.grains (id uuid PRIMARY KEY, grain int NOT NULL)",
    "CREATE TABLE sample.fact_grains (id uuid PRIMARY KEY, grain int NOT NULL)",
    "CREATE TABLE sample.hashed (old uuid, copy int, new uuid, grain int, number int)",  # terms of the copies of a piece
    "CREATE TABLE sample.copies (copy int)",
    "CREATE TABLE sample.indexes (number int, statement text)",
    """CREATE FUNCTION sample.id(uuid, int) RETURNS uuid LANGUAGE sql IMMUTABLE
       RETURN md5($1::text || '/' || $2::text)::uuid""",
    """CREATE FUNCTION sample.said(text, int) RETURNS text LANGUAGE sql IMMUTABLE
       RETURN replace(replace(replace($1, 'qx0000', 'qx' || lpad($2::text, 4, '0')),
         'qy0000', 'qy' || lpad(($2 / 10)::text, 4, '0')), 'qz0000', 'qz' || lpad(($2 / 100)::text, 4, '0'))""",
]

INSERT_ACCESSES = """INSERT INTO accesses (collection, access, id, labels, documents, passages, length, assertions)
    SELECT t.collection, x.access, x.id, x.labels, x.documents * %(copies)s, x.passages * %(copies)s, x.length * %(copies)s,
      x.assertions * %(copies)s
    FROM sample.tenants t CROSS JOIN sample.accesses x"""
ALL_COPIES = "FROM sample.tenants t CROSS JOIN sample.copies c CROSS JOIN"
INSERT_COPIES = {
    "documents": f"""INSERT INTO documents (collection, id, access, title, uri, source, metadata, labels, recorded_at, digest)
        SELECT t.collection, sample.id(x.id, c.copy), x.access, sample.said(x.title, c.copy), x.uri || '/' || c.copy,
          x.source, x.metadata, x.labels, x.recorded_at, sample.id(x.digest, c.copy) {ALL_COPIES} sample.documents x""",
    "document_tags": f"""INSERT INTO document_tags (collection, document, tag)
        SELECT t.collection, sample.id(x.document, c.copy), x.tag {ALL_COPIES} sample.document_tags x""",
    "passages": f"""INSERT INTO passages (collection, id, number, document, access, position, title, text, start, "end", headings)
        SELECT t.collection, sample.id(x.id, c.copy), x.number + (c.copy - %(first)s) * %(size)s, sample.id(x.document, c.copy), x.access,
          x.position, sample.said(x.title, c.copy), sample.said(x.text, c.copy), x.start, x."end", x.headings
        {ALL_COPIES} sample.passages x""",
    "terms": """INSERT INTO terms (collection, term, number, passages)
        SELECT t.collection, h.new, h.number, x.passages * least(h.grain, %(end)s - h.copy)
        FROM sample.tenants t CROSS JOIN sample.terms x JOIN sample.hashed h ON h.old = x.term""",
    "term_counts": """INSERT INTO term_counts (collection, term, access, passages)
        SELECT t.collection, h.number, n.access, n.passages * least(h.grain, %(end)s - h.copy)
        FROM sample.tenants t CROSS JOIN sample.term_counts n JOIN sample.terms x ON x.number = n.term
        JOIN sample.hashed h ON h.old = x.term""",
    "entities": f"""INSERT INTO entities (collection, id, sense, passages)
        SELECT t.collection, sample.id(x.id, c.copy / g.grain), x.sense, x.passages * least(g.grain, %(end)s - c.copy)
        {ALL_COPIES} sample.entities x JOIN sample.grains g ON g.id = x.id WHERE (c.copy %% g.grain = 0 OR c.copy = %(first)s)""",
    "entity_vectors": f"""INSERT INTO entity_vectors (collection, id, dimension, bits, code)
        SELECT t.collection, sample.id(x.id, c.copy / g.grain), x.dimension, x.bits, x.code
        {ALL_COPIES} sample.entity_vectors x JOIN sample.grains g ON g.id = x.id WHERE (c.copy %% g.grain = 0 OR c.copy = %(first)s)""",
    "profiles": f"""INSERT INTO profiles (collection, entity, access, document, name, type, description, aliases)
        SELECT t.collection, sample.id(x.entity, c.copy / g.grain), x.access, sample.id(x.document, c.copy),
          sample.said(x.name, c.copy), x.type, x.description, x.aliases
        {ALL_COPIES} sample.profiles x JOIN sample.grains g ON g.id = x.entity""",
    "mentions": f"""INSERT INTO mentions (collection, entity, access, rank, passage)
        SELECT t.collection, sample.id(x.entity, c.copy / g.grain), x.access, x.rank, sample.id(x.passage, c.copy)
        {ALL_COPIES} sample.mentions x JOIN sample.grains g ON g.id = x.entity""",
    "entity_counts": f"""INSERT INTO entity_counts (collection, entity, access, passages)
        SELECT t.collection, sample.id(x.entity, c.copy / g.grain), x.access, x.passages * least(g.grain, %(end)s - c.copy)
        {ALL_COPIES} sample.entity_counts x JOIN sample.grains g ON g.id = x.entity WHERE (c.copy %% g.grain = 0 OR c.copy = %(first)s)""",
    "statement_vectors": f"""INSERT INTO statement_vectors (collection, passage, codes)
        SELECT t.collection, sample.id(x.passage, c.copy), x.codes {ALL_COPIES} sample.statement_vectors x""",
    "edges": f"""INSERT INTO edges (collection, entity, access, rank, fact, predicate)
        SELECT t.collection, sample.id(x.entity, c.copy / g.grain), x.access, x.rank, sample.id(x.fact, c.copy / f.grain), x.predicate
        {ALL_COPIES} sample.edges x JOIN sample.grains g ON g.id = x.entity JOIN sample.fact_grains f ON f.id = x.fact
        WHERE (c.copy %% f.grain = 0 OR c.copy = %(first)s)""",
}  # fmt: skip
TABLES = ("accesses", *INSERT_COPIES, "names", "entity_keys", "packs", "assertions", "passage_vectors", "passage_terms")

# Computes the counters of every tenant from those of the first tenant, which has the sample.
UPDATE_COUNTERS = """
    UPDATE collections c SET version = f.version, model = f.model, dimension = f.dimension,
      documents = f.documents * %(copies)s, passages = f.passages * %(copies)s, mentions = f.mentions * %(copies)s,
      length = f.length * %(copies)s, next_passage = f.passages * %(copies)s + 1, next_access = f.next_access,
      next_term = %(next_term)s,
      entities = (SELECT coalesce(sum((%(copies)s + grain - 1) / grain), 0) FROM sample.grains),
      facts = (SELECT coalesce(sum((%(copies)s + grain - 1) / grain), 0) FROM sample.fact_grains)
    FROM (SELECT * FROM sample.collections) f
"""
SELECT_CONSTRAINTS = """
    SELECT c.conrelid::regclass::text, c.conname, pg_get_constraintdef(c.oid) FROM pg_constraint c
    WHERE c.connamespace = 'waylore'::regnamespace AND c.contype IN ('p', 'u')
      AND c.conrelid::regclass::text NOT IN ('collections', 'migrations') ORDER BY 1, 2
"""
SELECT_INDEXES = """
    SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
    WHERE c.relnamespace = 'waylore'::regnamespace AND c.relkind = 'r' AND c.relname NOT IN ('collections', 'migrations')
      AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid) ORDER BY 1
"""
DROP_SAMPLE = """DO $$
DECLARE
  own text;
BEGIN
  FOR own IN SELECT relname FROM pg_class WHERE relnamespace = 'sample'::regnamespace AND relkind = 'r' AND relname <> 'steps' LOOP
    EXECUTE format('DROP TABLE sample.%I', own);
  END LOOP;
END
$$"""
SELECT_WORDS = """
    SELECT w.number, w.id, w.length, p.access, w.terms FROM sample.passage_terms w JOIN sample.passages p ON p.id = w.id
    ORDER BY w.number
"""
SELECT_NAMES = {  # by kind
    "name": "SELECT name, entity, access, documents FROM sample.names",
    "key": "SELECT key, entity, access, documents FROM sample.entity_keys",
}
SELECT_VECTORS = """
    SELECT v.id, v.document, v.access FROM sample.passage_vectors v JOIN sample.passages p ON p.id = v.id ORDER BY p.number
"""
SELECT_PACKS = """
    SELECT p.id, p.access, d.recorded_at, k.pack FROM sample.packs k JOIN sample.passages p ON p.id = k.passage
    JOIN sample.documents d ON d.id = p.document ORDER BY p.number"""
