import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { decodeJwt } from "jose";
import { describe, expect, test } from "vitest";
import { loadSigningKeys } from "../src/calls/auth/signing-keys.ts";
import { commands } from "../src/cli/commands.ts";
import { listSettings, settingsTable } from "../src/cli/settings.ts";
import { newKey } from "../src/client/crypto.ts";
import { here } from "./cli/here.ts";
import { newDir, sealflow } from "./cli/program.ts";

const oneLine = /^sealflow[^\n]*\n$/;
const jwt = /^[\w-]+\.[\w-]+\.[\w-]+\n$/;

describe("help", () => {
  test.each([[[]], [["help"]], [["--help"]], [["-h"]]])(
    "sealflow %j lists every command",
    async (args) => {
      const { code, stdout, stderr } = await here(args, { cwd: newDir() });
      expect({ code, stderr }).toStrictEqual({ code: 0, stderr: "" });
      for (const name of commands.keys()) expect(stdout).toContain(`\n  ${name} `);
    },
  );

  test("each command's help names each of its options and variables", async () => {
    const settings = await listSettings();
    for (const name of commands.keys()) {
      const own = settings.filter((setting) => setting.commands.includes(name));
      const { code, stdout } = await here(["help", ...name.split(" ")], { cwd: newDir() });
      expect(code).toBe(0);
      expect(stdout).toContain(`Usage: sealflow ${name}`);
      for (const { argument } of own) expect(stdout).toContain(`  ${argument} `);
    }
  });

  test("help of a command is the same by word and by option", async () => {
    const cwd = newDir();
    const byWord = await here(["help", "client", "add"], { cwd });
    const byOption = await here(["client", "add", "--sub", "me", "--help"], { cwd });
    expect(byOption).toStrictEqual(byWord);
  });

  test("--version is the package's", async () => {
    const { stdout } = await sealflow(["--version"], { cwd: newDir() });
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  test("the table of settings holds every setting once", async () => {
    const settings = await listSettings();
    const table = settingsTable(settings);
    expect(table).toContain("| `--http-port PORT` | `SEALFLOW_HTTP_PORT` | `8080` |");
    const dataDir = settings.filter(({ variable }) => variable === "SEALFLOW_DATA_DIR");
    expect(dataDir).toMatchObject([{ argument: "--data-dir DIR", default: "./data" }]);
    expect(dataDir[0]?.commands).toContain("client remove");
  });
});

test.each([
  ["tokn", 2],
  ["token", 2],
  ["keys rotate", 1],
])("the process of sealflow %s ends with %i and one line", async (line, expected) => {
  const { code, stdout, stderr } = await sealflow(line.split(" "), { cwd: newDir() });
  expect({ code, stdout }).toStrictEqual({ code: expected, stdout: "" });
  expect(stderr).toMatch(oneLine);
});

describe("wrong usage ends with 2 and one line", () => {
  test.each([
    ["tokn", "token"],
    ["clint add x", "client add"],
    ["client", "add | list | remove"],
    ["keys rotat", "rotate"],
    ["--verson", "--version"],
    ["serv", "serve"],
    ["token", "--sub"],
    ["token --sub", "--sub OWNER"],
    ["token --sub --agent", "--sub"],
    ["token --sub me --tll 1h", "--ttl"],
    ["token --sub me --ttl 31d", "--ttl"],
    ["token --sub me --scope all", "--scope"],
    ["token --sub me --agent register", "--agent"],
    ["token --sub me extra", "extra"],
    ["client add --sub me", "NAME"],
    ["serve --http-port 65536", "--http-port"],
    ["serve --http-port 9000 --grpc-port 9000", "--grpc-port"],
    ["serve --plaintext=maybe", "--plaintext"],
    ["serve --database postgres://db/x", "PostgreSQL"],
    ["serve --database file.db", "sqlite:PATH"],
    ["serve --rate-limits work=5", "--rate-limits"],
    ["serve --rate-limits sync=many", "--rate-limits"],
    ["serve --cors-origins https://a.example/", "--cors-origins"],
    ["serve --trusted-proxies 10.0.0.0/99", "--trusted-proxies"],
    ["serve --agent-silence 5", "--agent-silence"],
    ["serve --grpc-lane maybe", "--grpc-lane"],
    ["serve --jwt-issuer x", "SEALFLOW_JWT_SECRET"],
    ["agent --id a --sub me", "COMMAND"],
    ["agent --id a --sub me cat", "--"],
    ["agent --id a -- cat", "credentials"],
    ["agent --id a/b --sub me -- cat", "--id"],
    ["agent --id a --sub me --lease 1s -- cat", "--lease"],
    ["agent --id a --sub me --server localhost:8080 -- cat", "--server"],
    ["seal", "SEALFLOW_KEY"],
    ["seal --type note", "--id"],
  ])("sealflow %s", async (line, named) => {
    const { code, stdout, stderr } = await here(line.split(" "), { cwd: newDir() });
    expect({ code, stdout }).toStrictEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(oneLine);
    expect(stderr).toContain(named);
  });

  test("a variable is checked like its option, and named", async () => {
    const env = { SEALFLOW_PLAINTEXT: "maybe" };
    const { code, stderr } = await here(["serve"], { cwd: newDir(), env });
    expect(code).toBe(2);
    expect(stderr).toContain("SEALFLOW_PLAINTEXT");
  });
});

describe("failures end with 1 and one line", () => {
  test.each([
    ["keys rotate", "signing key"],
    ["backup copy.db", "data/sealflow.db"],
    ["client remove nobody", "data/sealflow.db"],
    ["client list --data-dir mistyped", "mistyped/sealflow.db"],
    ["client add x --sub me --data-dir mistyped", "mistyped"],
    ["token --sub me --data-dir mistyped", "mistyped"],
    ["agent --id a --sub me -- cat", "signing key"],
    ["token --sub me --data-dir file", "file"],
    ["seal --key-file none", "none"],
  ])("sealflow %s", async (line, named) => {
    const cwd = newDir();
    writeFileSync(join(cwd, "file"), "");
    const { code, stdout, stderr } = await here(line.split(" "), { cwd });
    expect({ code, stdout }).toStrictEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(oneLine);
    expect(stderr).toContain(named);
    expect(readdirSync(cwd)).toStrictEqual(["file"]);
  });

  test("only SEALFLOW_DEBUG shows where it came from", async () => {
    const env = { SEALFLOW_DEBUG: "1" };
    const { stderr } = await here(["keys", "rotate"], { cwd: newDir(), env });
    expect(stderr).toMatch(/\n\s+at .+\.ts/);
  });
});

describe("token", () => {
  test("prints a token signed with the data directory's key, and nothing else", async () => {
    const cwd = newDir();
    const args = [
      "token",
      "--sub",
      "me",
      "--agent",
      "a1",
      "--scope",
      "agents,tasks",
      "--ttl",
      "2m",
    ];
    const { code, stdout, stderr } = await sealflow(args, { cwd });
    expect({ code, stderr }).toStrictEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(jwt);
    const claims = decodeJwt(stdout.trim());
    expect(claims).toMatchObject({
      sub: "me",
      agent_id: "a1",
      scope: "sealflow:agents sealflow:tasks",
    });
    expect(Number(claims.exp) - Number(claims.iat)).toBe(120);
    const { active } = await loadSigningKeys(join(cwd, "data"));
    const header = JSON.parse(Buffer.from(stdout.split(".")[0] ?? "", "base64url").toString());
    expect(header.kid).toBe(active.kid);
  });

  test("variables set options, and options win", async () => {
    const cwd = newDir();
    const env = { SEALFLOW_SUB: "variable", SEALFLOW_TTL: "3m", SEALFLOW_DATA_DIR: "elsewhere" };
    mkdirSync(join(cwd, "elsewhere"));
    const byVariable = decodeJwt((await here(["token"], { cwd, env })).stdout);
    expect(byVariable.sub).toBe("variable");
    const byOption = decodeJwt((await here(["token", "--sub=option"], { cwd, env })).stdout);
    expect(byOption.sub).toBe("option");
    expect(Number(byOption.exp) - Number(byOption.iat)).toBe(180);
    await expect(loadSigningKeys(join(cwd, "elsewhere"))).resolves.toBeDefined();
  });
});

describe("seal and open", () => {
  const bytes = Uint8Array.from({ length: 300 }, (_, i) => i % 256);

  test("seal --new-key prints a key, and nothing else", async () => {
    const { stdout } = await here(["seal", "--new-key"], { cwd: newDir() });
    expect(stdout).toMatch(/^[\w-]{43}\n$/);
  });

  test.each([
    ["JSON, as its value", ' {"a": [1, "ü"]}\n', '{"a":[1,"ü"]}\n'],
    ["text that is no JSON, byte for byte", "hello \n\n", "hello \n\n"],
    ["nothing, as no bytes", "", ""],
  ])("%s", async (_what, plain, expected) => {
    const how = sealing();
    const sealed = await sealflow(["seal"], { ...how, stdin: plain });
    expect(sealed.stdout).toMatch(/^[\w-]+(\.[\w-]*){4}\n$/);
    const opened = await sealflow(["open"], { ...how, stdin: sealed.stdout });
    expect(opened).toStrictEqual({ code: 0, stdout: expected, stderr: "" });
  });

  test("bytes that are no text, with the key from a file", async () => {
    const how = sealing();
    writeFileSync(join(how.cwd, "key"), `${how.env.SEALFLOW_KEY}\n`);
    const byFile = ["--key-file", "key"];
    const sealed = await sealflow(["seal", ...byFile], { cwd: how.cwd, stdin: bytes });
    const opened = await sealflow(["open", ...byFile], { cwd: how.cwd, stdin: sealed.stdout });
    // What is no UTF-8 was replaced while it was read here; the length tells the rest.
    expect(opened.stdout).toBe(Buffer.from(bytes).toString("utf8"));
  });

  test("a record's state opens as that state alone", async () => {
    const how = sealing();
    const record = ["--type", "note", "--id", "n1", "--version", "1.0.0"];
    const { stdout: sealed } = await sealflow(["seal", ...record], { ...how, stdin: "{}" });
    const opened = await sealflow(["open", ...record], { ...how, stdin: sealed });
    expect(opened).toMatchObject({ code: 0, stdout: "{}\n" });
    for (const other of [[...record, "--deleted"], [...record, "--version", "1.0.1"], []]) {
      const refused = await sealflow(["open", ...other], { ...how, stdin: sealed });
      expect(refused).toMatchObject({ code: 1, stdout: "" });
    }
  });

  test("a proof of deletion needs no payload", async () => {
    const how = sealing();
    const record = ["--type", "note", "--id", "n1", "--version", "2.0.0", "--deleted"];
    const { stdout: sealed } = await sealflow(["seal", ...record], how);
    const opened = await sealflow(["open", ...record], { ...how, stdin: sealed });
    expect(opened).toMatchObject({ code: 0, stdout: "null\n" });
  });

  test("a number that would change is refused unless it is sealed as bytes", async () => {
    const how = sealing();
    const stdin = '{"id":12345678901234567890}';
    expect(await sealflow(["seal"], { ...how, stdin })).toMatchObject({ code: 1, stdout: "" });
    const sealed = await sealflow(["seal", "--bytes"], { ...how, stdin });
    const opened = await sealflow(["open"], { ...how, stdin: sealed.stdout });
    expect(opened.stdout).toBe(stdin);
  });

  test("another key does not open it", async () => {
    const how = sealing();
    const { stdout } = await sealflow(["seal"], { ...how, stdin: "{}" });
    const other = { ...sealing(), stdin: stdout };
    expect(await sealflow(["open"], other)).toMatchObject({ code: 1, stdout: "" });
  });

  test("a secret is no argument, and is not repeated", async () => {
    const { code, stderr } = await here(["seal", "--key", "s3cret"], { cwd: newDir() });
    expect(code).toBe(2);
    expect(stderr).toContain("SEALFLOW_KEY");
    expect(stderr).not.toContain("s3cret");
  });
});

function sealing() {
  return { cwd: newDir(), env: { SEALFLOW_KEY: newKey() } };
}
