-- The tables of a store file, format 5. Several fleets share one file; a queue's number is unique in the file.
-- Ids, times and counters are 64-bit integers. Pieces are kept in their text form.

CREATE TABLE fleets (
    fleet INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    incarnation TEXT NOT NULL,
    clock INTEGER NOT NULL,
    last INTEGER NOT NULL,
    joins INTEGER NOT NULL,
    stop_upto INTEGER,
    stop_now INTEGER NOT NULL,
    -- How many idempotency keys are kept: counting them would cost what is stored.
    keys INTEGER NOT NULL,
    -- What the results count for.
    results INTEGER NOT NULL DEFAULT 0
) STRICT;

-- What every call of a session changes. Few and short rows: a scan finds the expired ones without an index that
-- every touch would have to move.
CREATE TABLE sessions (
    fleet INTEGER NOT NULL,
    session BLOB NOT NULL,
    lease_ms INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    suspects INTEGER NOT NULL,
    settle_no INTEGER NOT NULL,
    submit_no INTEGER NOT NULL,
    dispose_no INTEGER NOT NULL,
    PRIMARY KEY (fleet, session)
) STRICT, WITHOUT ROWID;

-- What only a join or a beat changes.
CREATE TABLE members (
    fleet INTEGER NOT NULL,
    session BLOB NOT NULL,
    node INTEGER NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    queues TEXT NOT NULL,
    offers TEXT NOT NULL,
    join_no INTEGER NOT NULL,
    joined_ms INTEGER NOT NULL,
    beat_ms INTEGER NOT NULL,
    report BLOB NOT NULL,
    PRIMARY KEY (fleet, session)
) STRICT, WITHOUT ROWID;

-- Kept answers. The slot is the number modulo how many are kept, so that a new answer replaces the oldest.
CREATE TABLE answers (
    fleet INTEGER NOT NULL,
    session BLOB NOT NULL,
    series INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    no INTEGER NOT NULL,
    answer TEXT NOT NULL,
    PRIMARY KEY (fleet, session, series, slot)
) STRICT, WITHOUT ROWID;

-- What a session holds under each of its claim numbers, which count within a queue.
CREATE TABLE claims (
    fleet INTEGER NOT NULL,
    session BLOB NOT NULL,
    queue TEXT NOT NULL,
    claim_no INTEGER NOT NULL,
    pieces TEXT NOT NULL,
    PRIMARY KEY (fleet, session, queue, claim_no)
) STRICT, WITHOUT ROWID;

CREATE TABLE claim_numbers (
    fleet INTEGER NOT NULL,
    session BLOB NOT NULL,
    queue TEXT NOT NULL,
    high INTEGER NOT NULL,
    holes TEXT NOT NULL,
    PRIMARY KEY (fleet, session, queue)
) STRICT, WITHOUT ROWID;

-- Who waits for a queue, and since when.
CREATE TABLE waiters (
    fleet INTEGER NOT NULL,
    queue TEXT NOT NULL,
    session BLOB NOT NULL,
    since INTEGER NOT NULL,
    PRIMARY KEY (fleet, queue, session)
) STRICT, WITHOUT ROWID;

-- How many batons a session holds, if any.
CREATE TABLE batons (
    fleet INTEGER NOT NULL,
    session BLOB NOT NULL,
    held INTEGER NOT NULL,
    PRIMARY KEY (fleet, session)
) STRICT, WITHOUT ROWID;

-- How many nodes without a baton work for a queue.
CREATE TABLE workers (
    fleet INTEGER NOT NULL,
    queue TEXT NOT NULL,
    nodes INTEGER NOT NULL,
    PRIMARY KEY (fleet, queue)
) STRICT, WITHOUT ROWID;

CREATE TABLE sources (
    fleet INTEGER NOT NULL,
    name TEXT NOT NULL,
    queue TEXT NOT NULL,
    definition TEXT,
    holder BLOB,
    epoch INTEGER NOT NULL,
    cursor TEXT NOT NULL,
    batch_no INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    PRIMARY KEY (fleet, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE queues (
    queue INTEGER PRIMARY KEY,
    fleet INTEGER NOT NULL,
    name TEXT NOT NULL,
    paused INTEGER NOT NULL DEFAULT 0,
    pushed INTEGER NOT NULL DEFAULT 0,
    ready INTEGER NOT NULL DEFAULT 0,
    delayed INTEGER NOT NULL DEFAULT 0,
    in_flight INTEGER NOT NULL DEFAULT 0,
    done INTEGER NOT NULL DEFAULT 0,
    dead INTEGER NOT NULL DEFAULT 0,
    drained INTEGER NOT NULL DEFAULT 0,
    requeued INTEGER NOT NULL DEFAULT 0,
    done_sum INTEGER NOT NULL DEFAULT 0,
    drained_sum INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0,
    stale_pushes INTEGER NOT NULL DEFAULT 0,
    stale_settles INTEGER NOT NULL DEFAULT 0,
    dead_seq INTEGER NOT NULL DEFAULT 0,
    drainer BLOB,
    UNIQUE (fleet, name)
) STRICT;

-- Messages waiting: line 0 is ready, 1 the suspects. What goes to the front gets a smaller place.
CREATE TABLE lines (
    queue INTEGER NOT NULL,
    line INTEGER NOT NULL,
    place INTEGER NOT NULL,
    piece TEXT NOT NULL,
    PRIMARY KEY (queue, line, place)
) STRICT, WITHOUT ROWID;

CREATE TABLE delayed (
    queue INTEGER NOT NULL,
    due INTEGER NOT NULL,
    id INTEGER NOT NULL,
    piece TEXT NOT NULL,
    PRIMARY KEY (queue, due, id)
) STRICT, WITHOUT ROWID;

-- Bodies, written once, and once more without those of messages that have gone. A rowid table, because only those can be read in part.
CREATE TABLE parcels (
    parcel INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    own INTEGER NOT NULL,
    first INTEGER NOT NULL,
    count INTEGER NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (queue, first, own)
) STRICT;

-- Which messages of a parcel have gone, once some have: a bit each. Apart from the parcels, because changing a row writes
-- all of it.
CREATE TABLE remainders (
    queue INTEGER NOT NULL,
    first INTEGER NOT NULL,
    gone BLOB NOT NULL,
    PRIMARY KEY (queue, first)
) STRICT, WITHOUT ROWID;

CREATE TABLE dead (
    entry INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    id INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    losses INTEGER NOT NULL,
    born INTEGER NOT NULL,
    at INTEGER NOT NULL,
    node TEXT NOT NULL,
    error TEXT NOT NULL,
    headers BLOB NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (queue, seq),
    UNIQUE (queue, id)
) STRICT;

CREATE TABLE keys (
    fleet INTEGER NOT NULL,
    key TEXT NOT NULL,
    queue TEXT NOT NULL,
    id INTEGER NOT NULL,
    digest TEXT NOT NULL,
    expires_ms INTEGER NOT NULL,
    PRIMARY KEY (fleet, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX key_ends ON keys (fleet, expires_ms);

CREATE TABLE bookmarks (
    fleet INTEGER NOT NULL,
    key TEXT NOT NULL,
    lines INTEGER NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (fleet, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE results (
    entry INTEGER PRIMARY KEY,
    fleet INTEGER NOT NULL,
    queue INTEGER NOT NULL,
    id INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    result BLOB NOT NULL,
    UNIQUE (queue, id)
) STRICT;
CREATE INDEX result_ends ON results (fleet, expires_ms);
