// Starts a JavaScript tool: calls its `execute`, its `main` or what it exports with the parameters, or runs it as a script.
// argv: node, this file, the verified file, the path it should believe it has, further arguments.
// Parameters arrive as one JSON object on standard input.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const Module = require("node:module");
const { pathToFileURL } = require("node:url");
const vm = require("node:vm");

// TypeScript runs where Node itself can take the types away.
function javascript(source, shown) {
  if (!/\.[cm]?ts$/.test(shown)) return source.replace(/^#!.*/, "");
  if (typeof Module.stripTypeScriptTypes !== "function") {
    throw new Error(`${path.basename(shown)} is TypeScript, which Node ${process.version} cannot run`);
  }
  // Node warns that this may change: that is for whoever keeps this file, not for whoever runs the tool.
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return Module.stripTypeScriptTypes(source);
  } finally {
    process.emitWarning = emitWarning;
  }
}

// The packages a tool requires lie in the folders of NODE_PATH, and shared modules in its own `lib`. They come before any
// `node_modules` that happens to lie above the tool: what was installed for it is what it gets.
const lib = path.join(path.dirname(process.argv[2]), "lib");
const modules = shared();
const packages = (process.env.NODE_PATH || "").split(path.delimiter).filter((folder) => {
  return path.isAbsolute(folder) && fs.existsSync(folder);
}).map((folder) => fs.realpathSync(folder));
const folders = [...(modules.length > 0 ? [fs.realpathSync(lib)] : []), ...packages];

// The files of shared modules, by the names that mean them. What Node has under a name is what Node gives.
function shared() {
  if (!fs.existsSync(lib)) return [];
  const named = (file) => [file, file.replace(/\.[^.]*$/, "")].map((name) => [name, path.join(lib, file)]);
  const inside = (folder) => ["index.js", "index.mjs"].map((file) => [folder, path.join(lib, folder, file)]);
  const found = fs.readdirSync(lib).flatMap((name) => (/\.[cm]?[jt]s$/.test(name) ? named(name) : inside(name)));
  return found.filter(([name, file]) => !Module.builtinModules.includes(name) && fs.existsSync(file));
}

function findRequired() {
  const plain = Module._nodeModulePaths;
  // Packages themselves look beside each other first, as always.
  const isInside = (from) => packages.some((folder) => `${from}/`.startsWith(`${folder}/`));
  Module._nodeModulePaths = (from) => (isInside(from) ? plain(from) : [...folders, ...plain(from)]);
}

// `import` does not know NODE_PATH; and from verified bytes, which have no place, it would find nothing at all.
function findImported(shown) {
  const url = (file) => pathToFileURL(file).href;
  const known = packages.filter((folder) => path.basename(folder) === "node_modules");
  const beside = known.map((folder) => url(path.join(path.dirname(folder), "tool.mjs")));
  const inside = known.map((folder) => url(folder) + "/");
  // Of shared modules `import` would find whole packages only.
  const places = Object.fromEntries(modules.map(([name, file]) => [name, url(file)]));
  const data = { beside, inside, shown: url(shown), places };
  if (typeof Module.registerHooks === "function") {
    Module.registerHooks({
      resolve(asked, context, next) {
        // `require` comes by here too, and finds its own way.
        const name = context.conditions.includes("import") ? meant(data, asked, context.parentURL) : asked;
        let missing;
        for (const parentURL of origins(data, name, context.parentURL)) {
          try {
            return next(name, { ...context, parentURL });
          } catch (error) {
            if (error.code !== "ERR_MODULE_NOT_FOUND") throw error;
            missing = error;
          }
        }
        throw missing;
      },
    });
  } else if (typeof Module.register === "function") {
    // Before Node 22.15 names are resolved on a thread of their own, which shares nothing with this one.
    const hook = `const data = ${JSON.stringify(data)};
      ${origins}
      ${meant}
      export async function resolve(asked, context, next) {
        const name = meant(data, asked, context.parentURL);
        let missing;
        for (const parentURL of origins(data, name, context.parentURL)) {
          try {
            return await next(name, { ...context, parentURL });
          } catch (error) {
            if (error.code !== "ERR_MODULE_NOT_FOUND") throw error;
            missing = error;
          }
        }
        throw missing;
      }`;
    Module.register("data:text/javascript," + encodeURIComponent(hook));
  }
}

// What a name stands for. Packages know nothing of the tool's modules.
function meant({ inside, places }, name, parent) {
  const isPackage = parent && inside.some((folder) => parent.startsWith(folder));
  return !isPackage && Object.hasOwn(places, name) ? places[name] : name;
}

// From where a name is looked for, one after the other.
function origins({ beside, inside, shown }, name, parent) {
  const isBare = !/^(\.{0,2}\/|#|[a-z][a-z0-9+.-]*:)/i.test(name);
  const from = parent && parent.startsWith("data:") ? shown : parent;
  if (!isBare || !parent || inside.some((folder) => parent.startsWith(folder))) return [from];
  return [...beside, from];
}

function imported(source, shown) {
  // Stack traces name it as it should be named, and not by all of its bytes.
  const named = `${source}\n//# sourceURL=${pathToFileURL(shown).href}`;
  return import("data:text/javascript;base64," + Buffer.from(named, "utf8").toString("base64"));
}

// The verified file has no name of its own: its bytes are compiled under the name it should have.
async function compiled(source, shown) {
  const tool = new Module(shown, null);
  tool.filename = shown;
  tool.paths = Module._nodeModulePaths(path.dirname(shown));
  try {
    tool._compile(source, shown);
  } catch (error) {
    // A module all the same, and one that waits for something while it is loaded. Nothing of it has run yet.
    if (error.code !== "ERR_REQUIRE_ASYNC_MODULE" || isScript(source)) throw error;
    return imported(source, shown);
  }
  return tool.exports;
}

// Node finds out by itself that a file is a module. But then some versions load it in a way that asks nobody where its packages
// are.
function isModule(source, shown) {
  if (/\.[cm][jt]s$/.test(shown)) return /\.m[jt]s$/.test(shown);
  return folders.length > 0 && !isScript(source);
}

// What a tool is called by: its `execute`, its `main`, or the function that is all it exports.
function callable(exported) {
  if (!exported) return undefined;
  const isFunction = (each) => typeof each === "function" && !/^class\b/.test(Function.prototype.toString.call(each));
  return [exported.execute, exported.main, exported].find(isFunction);
}

function isScript(source) {
  try {
    vm.compileFunction(source, ["exports", "require", "module", "__filename", "__dirname"]);
    return true;
  } catch {
    return false;
  }
}

async function main() {
  const [verified, shown, ...rest] = process.argv.slice(2);
  process.argv.splice(1, process.argv.length - 1, shown, ...rest);
  const inPlace = path.basename(verified) === path.basename(shown);
  if (folders.length > 0) {
    findRequired();
    // A file that never says `import` is spared the cost; where there are packages, files beside it may say so.
    const mayImport = (inPlace && packages.length > 0) || /\bimport\b/.test(fs.readFileSync(verified, "utf8"));
    if (mayImport) findImported(shown);
  }
  let exported;
  if (inPlace) {
    exported = await import(pathToFileURL(verified).href);
  } else {
    const source = javascript(fs.readFileSync(verified, "utf8"), shown);
    exported = isModule(source, shown) ? await imported(source, shown) : await compiled(source, shown);
  }
  const call = callable(exported) || callable(exported && exported.default);
  if (!call) return;
  const raw = fs.readFileSync(0, "utf8");
  const result = await call(raw.trim() ? JSON.parse(raw) : {});
  if (result !== undefined) {
    process.stdout.write(typeof result === "string" ? result : JSON.stringify(result));
  }
}

// What went wrong, with the tool's name where Node has its bytes.
function told(error) {
  const [asked] = (error && error.code === "ERR_UNSUPPORTED_RESOLVE_REQUEST" && /(?<=specifier ")[^"]*/.exec(error.message)) || [];
  if (asked && /^\.{0,2}\//.test(asked)) {
    return `Error: Cannot find '${asked}': this tool is one file; a tool with more of them is a folder with a tool.yaml`;
  }
  if (asked) return `Error [ERR_MODULE_NOT_FOUND]: Cannot find package '${asked}' imported from ${process.argv[1]}`;
  const text = error && error.stack ? error.stack : String(error);
  return text.replace(/data:text\/javascript;base64,[\w+/=]*/g, process.argv[1]);
}

main().catch((error) => {
  console.error(told(error));
  process.exitCode = 1;
});
