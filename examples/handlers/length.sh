#!/bin/sh
# Answers with the length of a text: baton up --exec 'sh examples/handlers/length.sh' --lines FILE --until-done
# The body is the last of a message; of a text without escapes, all between the quotes.
# Standard output is for answers alone: what is for people goes to standard error, echo … >&2.
while read -r line; do
  id=${line#*'"id":'}; id=${id%%,*}
  body=${line##*'"body":'}; body=${body%\}}
  case $body in
    \"*\") body=${body#\"}; body=${body%\"}; echo "{\"id\":$id,\"event\":\"end\",\"data\":${#body}}" ;;
    *) echo "{\"id\":$id,\"event\":\"error\",\"message\":\"no text\",\"fatal\":true}" ;;
  esac
done
