-- From format 1 to format 2: claims are numbered within their queue, and those who wait and work for a queue are kept.
-- Sessions that are still there are silent; as visitors they are counted for no queue until they are reaped.

ALTER TABLE claims RENAME TO former_claims;
CREATE TABLE claims (
    fleet INTEGER NOT NULL,
    session BLOB NOT NULL,
    queue TEXT NOT NULL,
    claim_no INTEGER NOT NULL,
    pieces TEXT NOT NULL,
    PRIMARY KEY (fleet, session, queue, claim_no)
) STRICT, WITHOUT ROWID;
INSERT INTO claims SELECT fleet, session, queue, claim_no, pieces FROM former_claims;
DROP TABLE former_claims;
ALTER TABLE sessions DROP COLUMN claim_high;
ALTER TABLE sessions DROP COLUMN claim_holes;
UPDATE members SET node = 0;
CREATE TABLE claim_numbers (
    fleet INTEGER NOT NULL,
    session BLOB NOT NULL,
    queue TEXT NOT NULL,
    high INTEGER NOT NULL,
    holes TEXT NOT NULL,
    PRIMARY KEY (fleet, session, queue)
) STRICT, WITHOUT ROWID;
CREATE TABLE waiters (
    fleet INTEGER NOT NULL,
    queue TEXT NOT NULL,
    session BLOB NOT NULL,
    since INTEGER NOT NULL,
    PRIMARY KEY (fleet, queue, session)
) STRICT, WITHOUT ROWID;
CREATE TABLE batons (
    fleet INTEGER NOT NULL,
    session BLOB NOT NULL,
    held INTEGER NOT NULL,
    PRIMARY KEY (fleet, session)
) STRICT, WITHOUT ROWID;
CREATE TABLE workers (
    fleet INTEGER NOT NULL,
    queue TEXT NOT NULL,
    nodes INTEGER NOT NULL,
    PRIMARY KEY (fleet, queue)
) STRICT, WITHOUT ROWID;
