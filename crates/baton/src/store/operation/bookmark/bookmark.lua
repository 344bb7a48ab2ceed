#!lua flags=no-writes
-- Purpose: reads where a bookmark stands.
-- KEYS: 1 root
-- ARGV: 1 key
-- Returns: OK place `lines,digest` ('' at the start)
-- Idempotency: reads only.
return { 'OK', call('HGET', key.marks, ARGV[1]) or '' }
