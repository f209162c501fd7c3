-- The statement that fills the columns of assertions by which they are read newest first (earlier/postgres_series.py).

-- name: set_series
UPDATE assertions s SET series = u.series, began = u.began FROM (SELECT %s::int8 AS collection) c,
  unnest(%b::uuid[], %b::int2[], %b::float8[], %b::uuid[], %b::int8[], %b::int8[]) u(fact, source, strength, passage, series, began)
WHERE s.collection = c.collection AND s.fact = u.fact AND s.source = u.source AND s.rank = -u.strength AND s.passage = u.passage
