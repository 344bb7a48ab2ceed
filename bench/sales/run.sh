#!/bin/sh
# Total sales over 100,000 rows by 20 connections of wrk, on Baton, on Node with `level` and, for cached answers, on nginx with
# proxy_cache, in one run:
#   bench/sales/run.sh [SECONDS] [ROWS]
# What is not installed is left out by name. Ends what it starts.
set -eu
seconds=${1:-5} rows=${2:-100000} here=$(cd "$(dirname "$0")" && pwd) baton=${BATON:-target/release/baton}
command -v wrk >/dev/null 2>&1 || { echo "wrk is not installed: nothing can be measured (apt-get install wrk)"; exit 1; }
folder=$(mktemp -d) started=
trap 'for pid in $started; do kill "$pid" 2>/dev/null || true; done; wait; rm -rf "$folder"' EXIT
port=$((10000 + $$ % 10000)) node_port=$((port + 1)) nginx_port=$((port + 2))
until_up() { tries=0; until curl -fs -o /dev/null "$1"; do tries=$((tries + 1)); [ "$tries" -lt 300 ] || { echo "never up: $1"; exit 1; }; sleep 0.1; done; }
# The rate of a URL; a second argument is shown before it.
measure() { wrk -t1 -c20 -d"${seconds}s" --timeout 30s --latency "$2" >"$folder/wrk" 2>&1
    awk -v what="$1" '/Requests\/sec/ { rate = $2 } /99%/ { late = $2 } /Non-2xx|Socket errors/ { odd = odd "  " $0 } END { printf "  %-22s %12s requests/s, 99%% within %s%s\n", what, rate, late, odd }' "$folder/wrk"; }

export HOME="$folder" BATON_STORE="sqlite:$folder/baton.db"
"$baton" sales load --random "$rows" --seed 1 >/dev/null
"$baton" up --queue none --handler noop --workers 0 --recipes --listen "$port" --quiet 2>"$folder/up.log" &
started="$started $!"
until_up "http://127.0.0.1:$port/health/ready"

node_ready=
if ! command -v node >/dev/null 2>&1; then
    echo "node is not installed: left out"
elif [ ! -d "$here/node_modules/level" ] && ! (cd "$here" && npm install --silent --no-audit --no-fund >"$folder/npm.log" 2>&1); then
    echo "npm cannot install level: Node is left out"
else
    node_ready=1
    (cd "$here" && node node_sales.js load "$folder/level" "$rows")
fi
nginx_ready=
if command -v nginx >/dev/null 2>&1; then
    # As many workers as it likes, no log: the most it can do. They are this user's: the folder is.
    cat >"$folder/nginx.conf" <<CONF
user $(id -un) $(id -gn); worker_processes auto; pid $folder/nginx.pid; error_log $folder/nginx.log; daemon off;
events { worker_connections 1024; }
http {
  access_log off; keepalive_requests 1000000000;
  client_body_temp_path $folder/n1; proxy_temp_path $folder/n2; fastcgi_temp_path $folder/n3; uwsgi_temp_path $folder/n4; scgi_temp_path $folder/n5;
  proxy_cache_path $folder/cache keys_zone=totals:10m;
  server { listen 127.0.0.1:$nginx_port;
    location / { proxy_pass http://127.0.0.1:$port; proxy_set_header Host localhost; proxy_cache totals; proxy_cache_valid 200 30s;
      proxy_ignore_headers Cache-Control; proxy_cache_lock on; } }
}
CONF
    nginx -c "$folder/nginx.conf" -p "$folder" 2>/dev/null &
    started="$started $!"
    until_up "http://127.0.0.1:$nginx_port/totalSales?item=book"
    nginx_ready=1
else
    echo "nginx is not installed: left out (apt-get install nginx)"
fi

node_measure() { # mode
    [ -n "$node_ready" ] || return 0
    (cd "$here" && exec node node_sales.js serve "$folder/level" "$node_port" "$1" >"$folder/node.log") &
    pid=$! started="$started $!"
    until_up "http://127.0.0.1:$node_port/?item=book"
    measure "node $1" "http://127.0.0.1:$node_port/?item=book"
    kill "$pid"; wait "$pid" 2>/dev/null || true
}

for turn in 1 2; do
    echo "turn $turn: $rows rows, 20 connections, $seconds s each"
    measure "baton plain" "http://127.0.0.1:$port/totalSales?item=book&cache=off"
    node_measure plain
    measure "baton batched" "http://127.0.0.1:$port/totalSales?item=book&cache=batch"
    node_measure batched
    measure "baton cached" "http://127.0.0.1:$port/totalSales?item=book"
    measure "baton /health" "http://127.0.0.1:$port/health"
    node_measure cached
    node_measure promised
    [ -z "$nginx_ready" ] || measure "nginx cached" "http://127.0.0.1:$nginx_port/totalSales?item=book"
done
