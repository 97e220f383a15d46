// Unpacks the Chromium of the packages in the directory that is the first argument, and what it needs, into
// that directory.
import { mkdtempSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";

const packages = process.argv[2];
const unpacked = join(packages, "chromium");
const source = join(packages, "node_modules/@sparticuz/chromium");
// It unpacks into the temporary directory, whatever that is.
const partial = process.env.TMPDIR = mkdtempSync(join(packages, "partial-"));
const { inflate } = await import(pathToFileURL(join(source, "build/index.js")));
const archives = ["chromium.br", "al2023.tar.br", "fonts.tar.br"];
await Promise.all(archives.map((archive) => inflate(join(source, "bin", archive))));
// Theirs looks for fonts elsewhere. Without any, nothing of the text would be seen.
const fonts = `<fontconfig><dir>${unpacked}/fonts</dir><cachedir>${unpacked}/fonts/cache</cachedir></fontconfig>`;
writeFileSync(join(partial, "fonts/fonts.conf"), `<?xml version="1.0"?>${fonts}`);
renameSync(partial, unpacked);
