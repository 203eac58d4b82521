// Bundles the console: node bundle.mjs FOLDER. The index page is src/index.html with the hashed names filled in.

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, gzip } from "node:zlib";
import { build } from "esbuild";

const folder = process.argv[2];
const { metafile } = await build({
  entryPoints: ["src/main.tsx", "src/style.css"],
  outdir: join(folder, "assets"),
  entryNames: "[name]-[hash]",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none", // licences() has them whole
  metafile: true,
});

await mkdir(folder, { recursive: true });
let page = await readFile("src/index.html", "utf8");
for (const output of Object.keys(metafile.outputs)) {
  const name = basename(output);
  await compress(join(folder, "assets", name));
  page = page.replace(name.endsWith(".css") ? "{{style}}" : "{{script}}", `/assets/${name}`);
}
await writeFile(join(folder, "index.html"), page);
await writeFile(join(folder, "assets", "licences.txt"), await licences());

/** Put the forms beside a file in which a browser may get it. */
async function compress(path) {
  const content = await readFile(path);
  await writeFile(`${path}.br`, await promisify(brotliCompress)(content));
  await writeFile(`${path}.gz`, await promisify(gzip)(content));
}

/** The licences of all packages that went in; they want to be passed on. */
async function licences() {
  const packages = new Set(
    Object.keys(metafile.inputs).flatMap((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []),
  );
  const texts = [...packages].sort().map(async (name) => {
    const { version, license } = JSON.parse(await readFile(`node_modules/${name}/package.json`, "utf8"));
    const text = await firstOf(`node_modules/${name}`, ["LICENSE", "LICENSE.md", "LICENSE.txt"]);
    return `${name} ${version} (${license})\n\n${text}`;
  });
  return (await Promise.all(texts)).join("\n\n");
}

async function firstOf(folder, names) {
  for (const name of names) {
    try {
      return await readFile(join(folder, name), "utf8");
    } catch (error) {
      if (error.code !== "ENOENT") throw error;
    }
  }
  return "";
}
