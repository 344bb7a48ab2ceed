-- The tables of a store file, format 6. Several fleets share one file; a queue's number is unique in the file.
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
    results INTEGER NOT NULL DEFAULT 0,
    -- What the calls that have ended count for.
    calls INTEGER NOT NULL DEFAULT 0
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

-- Sessions that are over while their claims are not all back: whose they were, whether a loss counts.
CREATE TABLE estates (
    fleet INTEGER NOT NULL,
    session BLOB NOT NULL,
    node TEXT NOT NULL,
    lost INTEGER NOT NULL,
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
    cancelled INTEGER NOT NULL DEFAULT 0,
    cancelled_sum INTEGER NOT NULL DEFAULT 0,
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
    born INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (fleet, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX key_ends ON keys (fleet, expires_ms);

CREATE TABLE bookmarks (
    fleet INTEGER NOT NULL,
    key TEXT NOT NULL,
    lines INTEGER NOT NULL,
    digest TEXT NOT NULL,
    queue TEXT NOT NULL DEFAULT '',
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

-- Calls, by their first messages. The record is one text, see `tables/calls.rs`. `look_ms` is when it is looked whether it
-- is forsaken, `expires_ms` when it is forgotten.
CREATE TABLE calls (
    call INTEGER PRIMARY KEY,
    fleet INTEGER NOT NULL,
    queue TEXT NOT NULL,
    id INTEGER NOT NULL,
    record TEXT NOT NULL,
    outcome BLOB,
    look_ms INTEGER,
    expires_ms INTEGER,
    UNIQUE (fleet, queue, id)
) STRICT;
CREATE INDEX call_looks ON calls (fleet, look_ms) WHERE look_ms IS NOT NULL;
CREATE INDEX call_ends ON calls (fleet, expires_ms) WHERE expires_ms IS NOT NULL;

-- What each has told.
CREATE TABLE call_events (
    fleet INTEGER NOT NULL,
    call INTEGER NOT NULL,
    number INTEGER NOT NULL,
    event BLOB NOT NULL,
    PRIMARY KEY (fleet, call, number)
) STRICT, WITHOUT ROWID;

-- The keys of these events.
CREATE TABLE call_keys (
    fleet INTEGER NOT NULL,
    call INTEGER NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (fleet, call, key)
) STRICT, WITHOUT ROWID;

-- Messages of a call that are held, are delayed, or have told something.
CREATE TABLE call_holds (
    fleet INTEGER NOT NULL,
    call INTEGER NOT NULL,
    of TEXT NOT NULL,
    id INTEGER NOT NULL,
    session BLOB,
    claim_no INTEGER NOT NULL,
    emitted INTEGER NOT NULL,
    -- Of one that is delayed: when it is due.
    due_ms INTEGER,
    PRIMARY KEY (fleet, call, of, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX call_delays ON call_holds (fleet, call, due_ms, of, id) WHERE due_ms IS NOT NULL;

-- Which call a message has joined.
CREATE TABLE joined (
    fleet INTEGER NOT NULL,
    queue TEXT NOT NULL,
    id INTEGER NOT NULL,
    call_queue TEXT NOT NULL,
    call_id INTEGER NOT NULL,
    PRIMARY KEY (fleet, queue, id)
) STRICT, WITHOUT ROWID;

-- The counters of what is recalled.
CREATE TABLE recall_books (
    fleet INTEGER PRIMARY KEY,
    generation INTEGER NOT NULL,
    floor INTEGER NOT NULL,
    scopes INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) STRICT;

-- Values that are recalled: kind 0 is a value, 1 an error, 2 that none may be kept. Times are of the fleet clock.
CREATE TABLE recalled (
    entry INTEGER PRIMARY KEY,
    fleet INTEGER NOT NULL,
    key TEXT NOT NULL,
    kind INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    session BLOB NOT NULL,
    number INTEGER NOT NULL,
    made INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    value BLOB NOT NULL,
    UNIQUE (fleet, key)
) STRICT;
CREATE INDEX recalled_ends ON recalled (fleet, expires, key);

-- What was forgotten: `k` and a key, or `p` and a prefix.
CREATE TABLE forgotten (
    fleet INTEGER NOT NULL,
    scope TEXT NOT NULL,
    generation INTEGER NOT NULL,
    clock INTEGER NOT NULL,
    PRIMARY KEY (fleet, scope)
) STRICT, WITHOUT ROWID;
CREATE INDEX forgotten_order ON forgotten (fleet, generation);

-- Who computes the value of a key, who waits for it, and who recalls at all.
CREATE TABLE flights (
    fleet INTEGER NOT NULL,
    key TEXT NOT NULL,
    session BLOB NOT NULL,
    number INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    ends INTEGER NOT NULL,
    PRIMARY KEY (fleet, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX flights_of ON flights (fleet, session);

CREATE TABLE awaiting (
    fleet INTEGER NOT NULL,
    key TEXT NOT NULL,
    session BLOB NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (fleet, key, session)
) STRICT, WITHOUT ROWID;

CREATE TABLE recallers (
    fleet INTEGER NOT NULL,
    session BLOB NOT NULL,
    PRIMARY KEY (fleet, session)
) STRICT, WITHOUT ROWID;

-- Cancelled calls that a session holds messages of.
CREATE TABLE told (
    fleet INTEGER NOT NULL,
    session BLOB NOT NULL,
    queue TEXT NOT NULL,
    id INTEGER NOT NULL,
    PRIMARY KEY (fleet, session, queue, id)
) STRICT, WITHOUT ROWID;
