// Makes the package that is published: what programs import, as modules with their types, and the
// command, as a bundle, for loading some 600 modules one by one takes longer than all else at start.
//   node tools/build.ts [FOLDER, default dist]
import { execFile } from "node:child_process";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build as bundle } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Has files of its own beside its code. */
const notBundled = ["better-sqlite3"];
const packageFolder = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/;
const requireBanner =
  'import { createRequire as makeRequire } from "node:module";' +
  "const require = makeRequire(import.meta.url);";

await build(resolve(process.argv[2] ?? join(root, "dist")));

async function build(target: string): Promise<void> {
  await rm(target, { recursive: true, force: true });
  await mkdir(target, { recursive: true });
  await compile(target);
  await nameCompiledFiles(target);
  const bundled = await bundleCommand(join(target, "bin"));
  for (const path of ["proto", "docs", "README.md", "LICENSE"]) {
    await cp(join(root, path), join(target, path), { recursive: true });
  }
  const needed = [...(await importedPackages(target)), ...notBundled];
  await writeFile(join(target, "package.json"), await publishedManifest(needed));
  await writeFile(join(target, "bin/LICENSES"), await licensesOf(bundled));
}

async function compile(target: string): Promise<void> {
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const args = [tsc, "-p", "tsconfig.build.json", "--outDir", target];
  const run = promisify(execFile)(process.execPath, args, { cwd: root });
  await run.catch((failure: { stdout: string }) => {
    process.stderr.write(failure.stdout);
    throw new Error("tsc failed");
  });
}

/** The compiler rewrites the extensions of imports in JavaScript, but leaves them in types. */
async function nameCompiledFiles(target: string): Promise<void> {
  for (const path of await filesBelow(target, (name) => name.endsWith(".d.ts"))) {
    const text = await readFile(path, "utf8");
    await writeFile(path, text.replace(/(from |import\()("\.[^"]*)\.ts"/g, '$1$2.js"'));
  }
}

/** Answers the folders of the packages that went into it. */
async function bundleCommand(target: string): Promise<readonly string[]> {
  const { metafile } = await bundle({
    // A thread begins with a module of its own.
    entryPoints: ["main.ts", "storage/sqlite/file/checkpoint-worker.ts"].map((path) =>
      join(root, "src", path),
    ),
    entryNames: "[name]",
    absWorkingDir: root,
    outdir: target,
    bundle: true,
    splitting: true,
    platform: "node",
    format: "esm",
    target: "node22",
    external: notBundled,
    // Some packages are CommonJS and ask for modules of Node.
    banner: { js: requireBanner },
    metafile: true,
    logLevel: "warning",
  });
  // Beside the code that reads them. Drizzle's snapshots serve only to write migrations.
  await cp(join(root, "src/storage/sqlite/migrations"), join(target, "migrations"), {
    recursive: true,
    filter: (path) => !path.endsWith("_snapshot.json"),
  });
  const folders = Object.keys(metafile.inputs).map((path) => packageFolder.exec(path)?.[0] ?? "");
  return [...new Set(folders)].filter((folder) => folder !== "").sort();
}

/** The packages that what programs import asks for. */
async function importedPackages(target: string): Promise<readonly string[]> {
  const names = new Set<string>();
  for (const path of await filesBelow(target, (name) => /^(?:src|gen)\/.*\.js$/.test(name))) {
    const imports = (await readFile(path, "utf8")).matchAll(/from "((?:@[^/"]+\/)?[^./"][^/":]*)/g);
    for (const [, name = ""] of imports) names.add(name);
  }
  return [...names];
}

/** The terms of what was bundled, which go where it goes. */
async function licensesOf(folders: readonly string[]): Promise<string> {
  const texts = folders.map(async (folder) => {
    const { name, version, license } = JSON.parse(
      await readFile(join(root, folder, "package.json"), "utf8"),
    );
    const file = (await readdir(join(root, folder))).find((each) => /^licen[cs]e/i.test(each));
    const text = file === undefined ? "" : await readFile(join(root, folder, file), "utf8");
    return `${name} ${version}: ${license}\n\n${text}`;
  });
  return (await Promise.all(texts)).join(`\n${"-".repeat(80)}\n\n`);
}

/** Field by field: what a checkout needs must not reach those who install the package. */
async function publishedManifest(needed: readonly string[]): Promise<string> {
  const manifest = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  const { name, version, description, license, type, engines, dependencies } = manifest;
  const published = {
    name,
    version,
    description,
    license,
    type,
    engines,
    bin: { sealflow: "./bin/main.js" },
    exports: {
      "./client": exported("./src/client/client"),
      "./agent": exported("./src/client/agent"),
      "./crypto": exported("./src/client/crypto"),
      "./file-storage": exported("./src/client/replica/file-storage"),
      "./gen/*": "./gen/*",
      "./proto/*": "./proto/*",
      "./package.json": "./package.json",
    },
    files: ["bin", "src", "gen", "proto", "docs"],
    dependencies: Object.fromEntries(
      Object.entries(dependencies).filter(([dependency]) => needed.includes(dependency)),
    ),
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
