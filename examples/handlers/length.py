#!/usr/bin/env python3
# Answers with the length of a text: baton up --exec 'python3 examples/handlers/length.py' --lines FILE --until-done
import json
import sys

# Standard output is for answers alone: from here on print() is for people, on standard error.
answers, sys.stdout = sys.stdout, sys.stderr

for line in sys.stdin:
    message = json.loads(line)
    try:
        answer = {"event": "end", "data": len(message["body"])}
    except Exception as error:
        answer = {"event": "error", "message": f"{type(error).__name__}: {error}"}
    print(json.dumps({"id": message["id"], **answer}), file=answers, flush=True)
