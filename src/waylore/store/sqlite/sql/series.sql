-- The statement that fills the columns of assertions by which they are read newest first (earlier/sqlite_series.py).

-- name: set_series
UPDATE assertions SET series = ?7, began = ?8
WHERE collection = ?1 AND fact = ?2 AND source = ?3 AND strength = ?4 AND tie = ?5 AND passage = ?6
