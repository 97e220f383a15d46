-- A fence for leaders in MySQL and MariaDB: docs/fencing.md says how to use it. The names before the statements are those of
-- aiosql; each ? is the next parameter.

-- Only a table with transactions is a fence.
-- name: create()
CREATE TABLE fence (resource varchar(255) PRIMARY KEY, token bigint NOT NULL) ENGINE = InnoDB;

-- The first two statements of each transaction that a leader begins. The second one returns the largest token that the
-- resource has seen. Another than your own: ROLLBACK, and stop working.
-- name: enter(resource, token, token)
INSERT INTO fence (resource, token) VALUES (?, ?) ON DUPLICATE KEY UPDATE token = greatest(token, ?);

-- name: highest(resource)
SELECT token FROM fence WHERE resource = ? FOR UPDATE;

-- Where one row is all that a leader writes, the row can have the token, and needs no table `fence`.
-- name: create_row()
CREATE TABLE job (id varchar(255) PRIMARY KEY, state text NOT NULL, fencing_token bigint NOT NULL DEFAULT 0) ENGINE = InnoDB;

-- No row found: the token is stale, or there is no such row. The connection needs CLIENT_FOUND_ROWS, an option of the driver.
-- Without it, the database counts changed rows, and a leader that writes the same again takes itself for stale.
-- name: write_row(state, token, id, token)
UPDATE job SET state = ?, fencing_token = ? WHERE id = ? AND fencing_token <= ?;
