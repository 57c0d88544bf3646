// Compiles what is on standard input as the runner would, under the name that is given, and runs nothing of it. Whatever
// is wrong with it ends this, and Node says where.
const [name] = process.argv.slice(1);
const { stripTypeScriptTypes } = require("node:module");
const vm = require("node:vm");

const isTyped = /\.[cm]?ts$/.test(name);
// Types beside a tool that can do without them.
if (isTyped && !stripTypeScriptTypes) process.exit(0);
const read = require("node:fs").readFileSync(0, "utf8").replace(/^#!.*/, "");
const source = isTyped ? stripTypeScriptTypes(read) : read;

const given = ["exports", "require", "module", "__filename", "__dirname"];
const asScript = () => vm.compileFunction(source, given, { filename: "tool" });
const asModule = () => new vm.SourceTextModule(source, { identifier: "tool" });
// What Node takes for a sign that a file is a module after all.
const sign = /import statement|'export'|'?import\.meta|top level bodies of modules/;

if (/\.m[jt]s$/.test(name)) {
  asModule();
} else {
  try {
    asScript();
  } catch (error) {
    if (/\.c[jt]s$/.test(name) || !sign.test(error.message)) throw error;
    asModule();
  }
}
