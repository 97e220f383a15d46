-- A fence for leaders in PostgreSQL: docs/fencing.md says how to use it. The names before the statements are those of
-- aiosql and sqlc; $1 is the first parameter.

-- name: create()
CREATE TABLE fence (resource text PRIMARY KEY, token bigint NOT NULL);

-- The first statement of each transaction that a leader begins. It returns the largest token that the resource has seen.
-- Another than your own: ROLLBACK, and stop working.
-- name: enter(resource, token)
INSERT INTO fence (resource, token) VALUES ($1, $2)
    ON CONFLICT (resource) DO UPDATE SET token = greatest(fence.token, excluded.token)
    RETURNING token;

-- Where one row is all that a leader writes, the row can have the token, and needs no table `fence`.
-- name: create_row()
CREATE TABLE job (id text PRIMARY KEY, state text NOT NULL, fencing_token bigint NOT NULL DEFAULT 0);

-- No changed row: the token is stale, or there is no such row.
-- name: write_row(state, token, id, token)
UPDATE job SET state = $1, fencing_token = $2 WHERE id = $3 AND fencing_token <= $4;
