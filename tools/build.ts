// Makes the package that is published: JavaScript for every Node that the engines field names, the
// types of what it exports, and all that it reads at run time.
//   node tools/build.ts [FOLDER, default dist]
import { execFile } from "node:child_process";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const root = fileURLToPath(new URL("..", import.meta.url));

await build(resolve(process.argv[2] ?? join(root, "dist")));

async function build(target: string): Promise<void> {
  await rm(target, { recursive: true, force: true });
  await mkdir(target, { recursive: true });
  await compile("tsconfig.build.json", target);
  await compile("tsconfig.build-types.json", target);
  await nameCompiledFiles(target);
  await copyAssets(target);
  await writeFile(join(target, "package.json"), await publishedManifest());
}

async function compile(project: string, target: string): Promise<void> {
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const run = promisify(execFile)(process.execPath, [tsc, "-p", project, "--outDir", target], {
    cwd: root,
  });
  await run.catch((failure: { stdout: string }) => {
    process.stderr.write(failure.stdout);
    throw new Error(`tsc -p ${project} failed`);
  });
}

/** The compiler rewrites the extensions of imports in JavaScript, but leaves them in types. */
async function nameCompiledFiles(target: string): Promise<void> {
  for (const path of await filesBelow(target, (name) => name.endsWith(".d.ts"))) {
    const text = await readFile(path, "utf8");
    await writeFile(path, text.replace(/(from |import\()("\.[^"]*)\.ts"/g, '$1$2.js"'));
  }
}

/** What the program reads beside its code. Drizzle's snapshots serve only to write migrations. */
async function copyAssets(target: string): Promise<void> {
  await cp(join(root, "src"), join(target, "src"), {
    recursive: true,
    filter: (path) => !path.endsWith(".ts") && !path.endsWith("_snapshot.json"),
  });
  for (const path of ["proto", "README.md", "LICENSE"]) {
    await cp(join(root, path), join(target, path), { recursive: true });
  }
}

/** Field by field: what a checkout needs must not reach those who install the package. */
async function publishedManifest(): Promise<string> {
  const manifest = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  const { name, version, description, license, type, engines, dependencies } = manifest;
  const published = {
    name,
    version,
    description,
    license,
    type,
    engines,
    bin: { sealflow: "./src/main.js" },
    exports: {
      "./client": exported("./src/client/client"),
      "./agent": exported("./src/client/agent"),
      "./crypto": exported("./src/client/crypto"),
      "./gen/*": "./gen/*",
      "./proto/*": "./proto/*",
      "./package.json": "./package.json",
    },
    files: ["src", "gen", "proto"],
    dependencies,
  };
  return `${JSON.stringify(published, null, 2)}\n`;
}

function exported(path: string) {
  return { types: `${path}.d.ts`, default: `${path}.js` };
}

async function filesBelow(folder: string, wanted: (name: string) => boolean): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true });
  return entries.filter(wanted).map((name) => join(folder, name));
}
