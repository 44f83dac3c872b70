import { runCommandLine } from "../../src/cli/run.ts";
import type { Ended, How } from "./program.ts";

/**
 * Runs a command line in this process, which is much quicker than a process of its own. For those
 * that start nothing and read no stdin.
 */
export async function here(args: readonly string[], { cwd, env }: How): Promise<Ended> {
  const written = { out: "", err: "" };
  const restore = [
    capture(process.stdout, (text) => {
      written.out += text;
    }),
    capture(process.stderr, (text) => {
      written.err += text;
    }),
  ];
  const [dirBefore, envBefore] = [process.cwd(), process.env];
  process.chdir(cwd);
  process.env = { PATH: envBefore.PATH, ...env };
  try {
    const code = await runCommandLine(args);
    return { code, stdout: written.out, stderr: written.err };
  } finally {
    process.env = envBefore;
    process.chdir(dirBefore);
    for (const each of restore) each();
  }
}

function capture(stream: NodeJS.WriteStream, take: (text: string) => void): () => void {
  const { write } = stream;
  stream.write = (chunk: string | Uint8Array) => {
    take(String(chunk));
    return true;
  };
  return () => {
    stream.write = write;
  };
}
