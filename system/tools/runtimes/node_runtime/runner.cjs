// Starts a JavaScript tool: calls its `execute` or `main` with the parameters, or runs it as a script.
// argv: node, this file, the verified file, the path it should believe it has, further arguments.
// Parameters arrive as one JSON object on standard input.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const Module = require("node:module");
const { pathToFileURL } = require("node:url");

// TypeScript runs where Node itself can take the types away.
function javascript(source, shown) {
  if (!/\.[cm]?ts$/.test(shown)) return source.replace(/^#!.*/, "");
  if (typeof Module.stripTypeScriptTypes !== "function") {
    throw new Error(`${path.basename(shown)} is TypeScript, which needs Node 22.13 or newer; this is ${process.version}`);
  }
  return Module.stripTypeScriptTypes(source);
}

async function main() {
  const [verified, shown, ...rest] = process.argv.slice(2);
  process.argv.splice(1, process.argv.length - 1, shown, ...rest);
  const isModule = /\.m[jt]s$/.test(shown);
  const inPlace = path.basename(verified) === path.basename(shown);
  let exported;
  if (inPlace) {
    exported = await import(pathToFileURL(verified).href);
    exported = exported.default && !exported.execute && !exported.main ? exported.default : exported;
  } else if (isModule) {
    const source = javascript(fs.readFileSync(verified, "utf8"), shown);
    exported = await import("data:text/javascript;base64," + Buffer.from(source, "utf8").toString("base64"));
  } else {
    // The verified file has no name of its own: compile its bytes under the name it should have.
    const tool = new Module(shown, null);
    tool.filename = shown;
    tool.paths = Module._nodeModulePaths(path.dirname(shown));
    tool._compile(javascript(fs.readFileSync(verified, "utf8"), shown), shown);
    exported = tool.exports;
  }
  const call = exported && (exported.execute || exported.main);
  if (typeof call !== "function") return;
  const raw = fs.readFileSync(0, "utf8");
  const result = await call(raw.trim() ? JSON.parse(raw) : {});
  if (result !== undefined) {
    process.stdout.write(typeof result === "string" ? result : JSON.stringify(result));
  }
}

main().catch((error) => {
  console.error(error && error.stack ? error.stack : String(error));
  process.exitCode = 1;
});
