#!/bin/sh
# Pushes of single messages through the gateway beside /health, by wrk, on a Redis server of its own:
#   bench/gateway/run.sh [SECONDS] [CONNECTIONS]
# Each is measured in turns, since the machine's pace changes. Ends what it starts.
set -eu
seconds=${1:-5} connections=${2:-64} here=$(dirname "$0") baton=${BATON:-target/release/baton}
folder=$(mktemp -d) redis_port=$((20000 + $$ % 10000)) port=$((10000 + $$ % 10000))
redis-server --port "$redis_port" --save '' --appendonly no --dir "$folder" >"$folder/redis.log" 2>&1 &
redis=$!
trap 'kill "$up" "$redis" 2>/dev/null; wait; rm -rf "$folder"' EXIT
up=$redis
export HOME="$folder"
until redis-cli -p "$redis_port" ping >/dev/null 2>&1; do sleep 0.1; done
"$baton" --store "redis://127.0.0.1:$redis_port/0" up --queue none --handler noop --workers 0 --listen "$port" --quiet &
up=$!
until curl -fs "http://127.0.0.1:$port/health/ready" >/dev/null; do sleep 0.1; done
cpu() { redis-cli -p "$redis_port" info cpu | tr -d '\r' | awk -F: '/^used_cpu_(sys|user):/ { sum += $2 } END { print sum }'; }
count() { curl -s -o /dev/null -D - --json 1 "http://127.0.0.1:$port/push/bench" | tr -d '\r' | awk -F'[/@]' '/^location:/ { print $4 }'; }
for turn in 1 2; do
    echo "turn $turn, $connections connections, $seconds s each"
    wrk -t1 -c"$connections" -d"${seconds}s" --latency "http://127.0.0.1:$port/health" | grep -E 'Requests/sec|99%|Non-2xx' | sed 's/^/  health /'
    before=$(cpu) from=$(count)
    wrk -t1 -c"$connections" -d"${seconds}s" --latency -s "$here/push.lua" "http://127.0.0.1:$port/push/bench" | grep -E 'Requests/sec|99%|Non-2xx' | sed 's/^/  push   /'
    after=$(cpu) to=$(count)
    awk -v cpu="$(echo "$after $before" | awk '{ print $1 - $2 }')" -v n="$((to - from))" \
        'BEGIN { printf "  redis  %.1f us of CPU a push, %d pushes stored\n", cpu / n * 1e6, n }'
done
