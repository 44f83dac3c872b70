import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { makeFolder } from "../suites/open-store.ts";
import { readTour, settled, TourIds, type TourStep } from "./readme-tour.ts";

/** A shell in which the tour's commands run one after another, on ports of this test. */
class TourShell implements AsyncDisposable {
  readonly #shell: ChildProcess;
  readonly #background: ChildProcess[] = [];
  readonly #env: NodeJS.ProcessEnv;
  #output = "";
  #ports: readonly [http: string, grpc: string] = ["8080", "7233"];

  constructor(dataDir: string) {
    this.#env = { ...process.env, SEALFLOW_DATA_DIR: dataDir };
    this.#shell = spawn("bash", { env: this.#env, stdio: ["pipe", "pipe", "pipe"] });
    const collect = (chunk: Buffer) => {
      this.#output += chunk.toString();
    };
    this.#shell.stdout?.on("data", collect);
    this.#shell.stderr?.on("data", collect);
    this.#shell.stdin?.write("shopt -s expand_aliases\n");
  }

  /** Runs to its end; what it prints. */
  async run(command: string): Promise<string> {
    const mark = `__done_${Math.random().toString(36).slice(2)}__`;
    this.#output = "";
    this.#shell.stdin?.write(`${this.#here(command)}\necho; echo ${mark}\n`);
    await until(() => this.#output.includes(mark));
    return this.#output.slice(0, this.#output.indexOf(mark)).trim();
  }

  /** Runs beside the shell until the end of the test; what it prints until it has said enough. */
  async start(command: string, lines: number): Promise<string> {
    let output = "";
    const env = { ...this.#env, TOKEN: await this.run("echo $TOKEN") };
    const child = spawn("bash", ["-c", `exec ${this.#here(command)}`], { env });
    this.#background.push(child);
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
    await until(() => output.trim().split("\n").length >= lines);
    return output.trim();
  }

  async startServer(): Promise<string> {
    const printed = await this.start("sealflow serve --http-port 0 --grpc-port 0", 5);
    const [, http = ""] = /http:\/\/127\.0\.0\.1:(\d+)/.exec(printed) ?? [];
    const [, grpc = ""] = /gRPC\s+127\.0\.0\.1:(\d+)/.exec(printed) ?? [];
    this.#ports = [http, grpc];
    return printed;
  }

  #here(command: string): string {
    const [http, grpc] = this.#ports;
    const sealflow = `'${process.execPath}' src/main.ts`;
    return command
      .replace("npm run -s sealflow -- agent", `sealflow agent --server http://127.0.0.1:${http}`)
      .replace("npm run -s sealflow --", "sealflow")
      .replace(/\bsealflow (?=serve|token|agent)/, `${sealflow} `)
      .replaceAll("localhost:8080", `localhost:${http}`)
      .replaceAll("localhost:7233", `localhost:${grpc}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const all = [...this.#background, this.#shell];
    for (const child of all) child.kill("SIGKILL");
    await until(() => all.every(({ exitCode, signalCode }) => exitCode !== null || signalCode));
  }
}

async function until(isTrue: () => unknown, seconds = 20): Promise<void> {
  for (const end = Date.now() + seconds * 1000; !isTrue(); ) {
    if (Date.now() > end) throw new Error("it took too long");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function play(shell: TourShell, command: string, { output }: TourStep): Promise<string> {
  const lines = output.split("\n").length;
  if (command.endsWith("npm start")) return shell.startServer();
  if (command.includes("-- agent") || command.startsWith("npx buf")) {
    return shell.start(command, lines);
  }
  return shell.run(command);
}

test("the tour of the README prints what the README says", { timeout: 90_000 }, async () => {
  const steps = readTour(readFileSync("README.md", "utf8")).filter(
    ({ command }) => !command.startsWith("#") && !command.includes("npm test"),
  );
  expect(steps.length).toBeGreaterThan(10);
  await using folder = await makeFolder();
  await using shell = new TourShell(`${folder.path}/data`);
  const ids = new TourIds();
  for (const step of steps) {
    const printed = await play(shell, ids.translate(step.command), step);
    ids.learn(step.output, printed);
    const said = settled(printed).replaceAll(` --data-dir ${folder.path}/data`, "");
    const expected = settled(step.output).replace("./data (", `${folder.path}/data (`);
    expect(said, step.command).toBe(expected);
  }
});
