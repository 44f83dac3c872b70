import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { build } from "esbuild";
import { describe, expect, test } from "vitest";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "../gen/google/rpc/error_details_pb.ts";
import { SyncConflictSchema } from "../gen/sealflow/v1/errors_pb.ts";
import { WorkflowSchema } from "../gen/sealflow/v1/workflow_pb.ts";
import { clientCredentials, connect, reasonOf, SyncConflictReason } from "../src/client/client.ts";

type Answer = (request: Request) => Response;

/** A server's answers, at the border of fetch. */
function answering(answer: Answer): { requests: Request[]; fetch: typeof globalThis.fetch } {
  const requests: Request[] = [];
  return {
    requests,
    fetch: async (input, init) => {
      const request = new Request(input, init);
      requests.push(request);
      return answer(request);
    },
  };
}

const workflow: Answer = () =>
  new Response(toBinary(WorkflowSchema, create(WorkflowSchema, { id: "wf_1", name: "Count" })), {
    headers: { "content-type": "application/proto" },
  });

const unauthenticated: Answer = () =>
  Response.json({ code: "unauthenticated", message: "expired" }, { status: 401 });

const bearerOf = (request: Request | undefined) => request?.headers.get("authorization");

describe("connect", () => {
  test("sends the credentials with every call", async () => {
    const { requests, fetch } = answering(workflow);
    const sealflow = connect("http://localhost:8080/", { token: "t1", agentId: "laptop", fetch });
    const found = await sealflow.workflows.getWorkflow({ id: "wf_1" });
    expect(found.name).toBe("Count");
    expect(requests[0]?.url).toBe("http://localhost:8080/sealflow.v1.WorkflowService/GetWorkflow");
    expect(bearerOf(requests[0])).toBe("Bearer t1");
    expect(requests[0]?.headers.get("x-agent-id")).toBe("laptop");
    expect(requests[0]?.headers.get("content-type")).toBe("application/proto");
  });

  test("takes the REST base address for the same server", async () => {
    const { requests, fetch } = answering(workflow);
    const options = { token: "t", agentId: "a", fetch };
    await connect("https://host/flow/api/v1", options).workflows.getWorkflow({ id: "wf_1" });
    expect(requests[0]?.url).toBe("https://host/flow/sealflow.v1.WorkflowService/GetWorkflow");
  });

  test.each(["localhost:8080", "ftp://host", ""])("refuses the address %j", (address) => {
    expect(() => connect(address, { token: "t", agentId: "a" })).toThrow(TypeError);
  });

  test("asks a token function for each call, and once more when its token is refused", async () => {
    const refused: (string | undefined)[] = [];
    let count = 0;
    const token = (old?: string) => {
      refused.push(old);
      count += 1;
      return `t${count}`;
    };
    const { requests, fetch } = answering((request) =>
      bearerOf(request) === "Bearer t1" ? unauthenticated(request) : workflow(request),
    );
    const { workflows } = connect("http://host", { token, agentId: "a", fetch });
    await workflows.getWorkflow({ id: "wf_1" });
    await workflows.getWorkflow({ id: "wf_1" });
    expect(requests.map(bearerOf)).toEqual(["Bearer t1", "Bearer t2", "Bearer t3"]);
    expect(refused).toEqual([undefined, "t1", undefined]);
  });

  test("does not send a refused token twice", async () => {
    const { requests, fetch } = answering(unauthenticated);
    const { workflows } = connect("http://host", { token: "t1", agentId: "a", fetch });
    await expect(workflows.getWorkflow({ id: "wf_1" })).rejects.toMatchObject({
      code: Code.Unauthenticated,
    });
    expect(requests).toHaveLength(1);
  });
});

describe("clientCredentials", () => {
  const client = { clientId: "cl_1", clientSecret: "s:e%t" };

  /** Tokens t1, t2, … that live so long. */
  function issuing(seconds: number): ReturnType<typeof answering> {
    let count = 0;
    return answering(() => {
      count += 1;
      const token = { access_token: `t${count}`, token_type: "Bearer", expires_in: seconds };
      return Response.json(token);
    });
  }

  test("asks the token endpoint as OAuth 2.0 has it", async () => {
    const { requests, fetch } = issuing(3600);
    expect(await clientCredentials("http://host", client, fetch)()).toBe("t1");
    expect(requests[0]?.url).toBe("http://host/api/v1/auth/token");
    expect(requests[0]?.method).toBe("POST");
    expect(bearerOf(requests[0])).toBe(`Basic ${btoa("cl_1:s%3Ae%25t")}`);
    expect(requests[0]?.headers.get("content-type")).toBe("application/x-www-form-urlencoded");
    expect(await requests[0]?.text()).toBe("grant_type=client_credentials");
  });

  test("keeps a token, shares the request for one, and renews what is refused", async () => {
    const { requests, fetch } = issuing(3600);
    const token = clientCredentials("http://host", client, fetch);
    expect(await Promise.all([token(), token()])).toEqual(["t1", "t1"]);
    expect(await token()).toBe("t1");
    expect(await token("t1")).toBe("t2");
    expect(await token("t1")).toBe("t2");
    expect(requests).toHaveLength(2);
  });

  test("renews a token before it expires", async () => {
    const { fetch } = issuing(0.1);
    const token = clientCredentials("http://host", client, fetch);
    expect(await token()).toBe("t1");
    await new Promise((resolve) => setTimeout(resolve, 85));
    expect(await token()).toBe("t2");
  });

  test.each([
    [401, {}, Code.Unauthenticated, undefined],
    [400, {}, Code.Unauthenticated, undefined],
    [429, { "retry-after": "7" }, Code.ResourceExhausted, 7000],
    [503, {}, Code.Unavailable, undefined],
  ])("fails for %i in a way that tells whether to go on", async (status, headers, code, after) => {
    const { fetch } = answering(() => new Response("{}", { status, headers }));
    const error: unknown = await clientCredentials("http://host", client, fetch)().catch(
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({ code });
    expect(reasonOf(error)?.retryAfterMs).toBe(after);
    expect(String(error)).not.toContain("s:e%t");
  });

  test("fails as unavailable when nobody answers, and tries anew the next time", async () => {
    let isAway = true;
    const { fetch } = answering(() => {
      if (isAway) throw new TypeError("fetch failed");
      return Response.json({ access_token: "t1", expires_in: 60 });
    });
    const token = clientCredentials("http://host", client, fetch);
    await expect(token()).rejects.toMatchObject({ code: Code.Unavailable });
    isAway = false;
    expect(await token()).toBe("t1");
  });
});

describe("reasonOf", () => {
  test("reads all that the service says", () => {
    const details = [
      {
        desc: ErrorInfoSchema,
        value: { reason: "SYNC_CONFLICT", domain: "sealflow", metadata: { a: "b" } },
      },
      { desc: RetryInfoSchema, value: { retryDelay: { seconds: 1n, nanos: 5e8 } } },
      {
        desc: BadRequestSchema,
        value: { fieldViolations: [{ field: "name", description: "is required" }] },
      },
      { desc: SyncConflictSchema, value: { reason: SyncConflictReason.STALE_VERSION } },
    ];
    expect(reasonOf(new ConnectError("m", Code.Aborted, {}, details))).toMatchObject({
      reason: "SYNC_CONFLICT",
      details: { a: "b" },
      fields: [{ field: "name", message: "is required" }],
      retryAfterMs: 1500,
      conflict: { reason: SyncConflictReason.STALE_VERSION },
    });
  });

  test("knows nothing of errors that are not the service's", () => {
    const foreign = { reason: "RATE_LIMITED", domain: "elsewhere" };
    const unknown = { reason: "NEVER_HEARD_OF", domain: "sealflow" };
    for (const error of [
      new Error("plain"),
      undefined,
      new ConnectError("bare", Code.NotFound),
      new ConnectError("f", Code.NotFound, {}, [{ desc: ErrorInfoSchema, value: foreign }]),
      new ConnectError("u", Code.NotFound, {}, [{ desc: ErrorInfoSchema, value: unknown }]),
    ]) {
      expect(reasonOf(error)).toBeUndefined();
    }
  });
});

test.each(["client", "agent", "crypto"])("sealflow/%s loads in a browser", async (name) => {
  // Fails when anything that it imports needs Node.
  const { outputFiles } = await build({
    entryPoints: [`src/client/${name}.ts`],
    bundle: true,
    format: "esm",
    platform: "browser",
    write: false,
    logLevel: "silent",
  });
  expect(outputFiles).toHaveLength(1);
});
