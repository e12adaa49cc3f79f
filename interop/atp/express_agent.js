// An agent on Express. Prints its port.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const express = require("express");

const app = express();
app.use(express.json({ limit: "20mb" }));

function* steps(request) {
  const event = (sequence, event_type, payload) => ({
    version: "1.0",
    task_id: request.task_id,
    timestamp: new Date().toISOString(),
    sequence,
    event_type,
    payload,
  });
  yield event(0, "progress", { current_step: 1, message: "grüße" });
  const isGreeting = request.task.description.includes("hello.txt");
  const name = isGreeting ? "hello.txt" : "answer.json";
  const question = request.task.input_data?.question;
  const content = isGreeting ? "Hello, world!\n" : JSON.stringify({ question, answer: 42 });
  fs.writeFileSync(path.join(request.context.workspace_path, name), content);
  yield event(1, "artifact_created", { artifact_type: "file", path: name, size_bytes: content.length });
  yield {
    version: "1.0",
    task_id: request.task_id,
    status: "completed",
    artifacts: [{ type: "file", path: name, content }],
    metrics: { total_steps: 1, total_tokens: 0 },
  };
}

app.post("/execute", (request, reply) => {
  reply.json([...steps(request.body)].at(-1));
});

app.post("/execute/stream", (request, reply) => {
  reply.type("text/event-stream");
  for (const message of steps(request.body)) {
    reply.write(`data: ${JSON.stringify(message)}\n\n`);
  }
  reply.end();
});

const server = app.listen(0, "127.0.0.1", () => console.log(server.address().port));
