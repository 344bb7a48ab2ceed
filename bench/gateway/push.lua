-- What wrk sends: one message a request.
wrk.method = "POST"
wrk.body = '{"to":"ada@example.org","subject":"a message of about a hundred bytes","n":1234567890,"x":"abcdefgh"}'
wrk.headers["Content-Type"] = "application/json"
