// A bare Fastify server: `silent`, or with its own logger on.
import fastify from "fastify";
import { readArguments, serving } from "./arguments.ts";
import type { WorkflowRow } from "./tables.ts";

const words = {
  draft: "pending",
  running: "running",
  completed: "completed",
  failed: "failed",
} as const;

const { tables, rest } = readArguments();
const server = fastify({ logger: rest[0] === "log" });

server.get<{ Params: { id: string } }>("/api/v1/workflows/:id", (request, reply) => {
  const row = tables.getWorkflow(request.params.id);
  if (row === undefined) reply.code(404).send({ message: "Workflow not found" });
  else reply.send(workflowOf(row));
});

server.get<{ Querystring: { limit?: string } }>("/api/v1/workflows", (request, reply) => {
  const limit = Number(request.query.limit ?? 50);
  const { rows, total } = tables.listWorkflows(limit + 1);
  const hasMore = rows.length > limit;
  reply.send({ workflows: rows.slice(0, limit).map(itemOf), total, hasMore });
});

const address = await server.listen({ port: 0, host: "127.0.0.1" });
serving(Number(new URL(address).port));

function workflowOf(row: WorkflowRow) {
  return {
    id: row.id,
    name: row.name,
    description: row.description,
    status: words[row.status],
    encryptedData: row.encrypted_data,
    requiredCapabilities:
      row.required_capabilities === "" ? [] : row.required_capabilities.split(","),
    createdAt: timeOf(row.created_us),
    updatedAt: timeOf(row.updated_us),
  };
}

function itemOf(row: WorkflowRow) {
  return {
    id: row.id,
    name: row.name,
    status: words[row.status],
    createdAt: timeOf(row.created_us),
  };
}

function timeOf(us: number): string {
  return new Date(us / 1000).toISOString();
}
