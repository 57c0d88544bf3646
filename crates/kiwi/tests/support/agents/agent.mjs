// An agent on the TypeScript SDK: all four tools, errors and cancellation. Prints one JSON object.
//     node agent.mjs SDK TARGET STEPS
const [sdk, target, text] = process.argv.slice(2);
const steps = JSON.parse(text);
const { Client } = await import(`${sdk}/index.js`);
const { StdioClientTransport } = await import(`${sdk}/stdio.js`);
const { StreamableHTTPClientTransport } = await import(`${sdk}/streamableHttp.js`);
const transport = target.startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args: ["mcp"], env: process.env });
const client = new Client({ name: "typescript", version: "1.0.0" });
await client.connect(transport);
const ask = async (name, args, options) => {
  const result = await client.callTool({ name, arguments: args }, undefined, options);
  return { is_error: Boolean(result.isError), content: result.structuredContent };
};
const said = {};
for (const [name, tool, args] of steps.steps) said[name] = await ask(tool, args);
said.together = (await Promise.all(steps.together.map((args) => ask("execute", args)))).map((it) => it.content);
const since = Date.now();
const stop = new AbortController();
const slow = ask("execute", steps.slow, { signal: stop.signal });
setTimeout(() => stop.abort("enough"), 1000);
said.cancelled = await slow.then(() => false, () => true);
said.after = await ask("help", { topic: "stuck" });
said.seconds = (Date.now() - since) / 1000;
console.log(JSON.stringify(said));
await client.close();
