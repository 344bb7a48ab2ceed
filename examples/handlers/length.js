#!/usr/bin/env node
// Answers with the length of a text: baton up --exec 'node examples/handlers/length.js' --lines FILE --until-done
// Standard output is for answers alone: what is for people goes to console.error.
const lines = require("node:readline").createInterface({ input: process.stdin });

lines.on("line", (line) => {
  const { id, body } = JSON.parse(line);
  const answer = typeof body === "string"
    ? { id, event: "end", data: [...body].length }
    : { id, event: "error", message: `a ${typeof body} has no length`, fatal: true };
  process.stdout.write(JSON.stringify(answer) + "\n");
});
