/** The licences of what is built in: whoever ships the build has to ship them, too. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const PACKAGE = /^(.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+)[\\/]/;

/** @returns {import("vite").Plugin} */
export function licenses() {
  return {
    name: "licenses",
    generateBundle() {
      const folders = new Set();
      for (const id of this.getModuleIds()) {
        const found = PACKAGE.exec(id.replaceAll("\0", ""));
        if (found) folders.add(found[1]);
      }
      const source = [...folders].sort().map(licenseOf).join("\n\n");
      this.emitFile({ type: "asset", fileName: "licenses.txt", source });
    },
  };
}

function licenseOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  if (!file || !existsSync(join(folder, file))) throw new Error(`${name} has no licence file`);
  return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
}
