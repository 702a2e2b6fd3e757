// An MCP client by the official SDK for TypeScript: lists the tools of a gateway, or calls one.
//
//   node client.cjs URL                        lists the tools
//   node client.cjs URL TOOL '{"city": "Oslo"}'  calls a tool
//
// `cargo xtask demo` runs it; by hand, `npm install @modelcontextprotocol/sdk` comes first.
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

async function main([url, tool, parameters]) {
  const client = new Client({ name: "example-client", version: "1.0.0" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  try {
    const answer =
      tool === undefined
        ? await client.listTools()
        : await client.callTool({ name: tool, arguments: JSON.parse(parameters ?? "{}") });
    console.log(JSON.stringify(answer, null, 2));
  } finally {
    // An open connection would keep this process alive.
    await client.close();
  }
}

main(process.argv.slice(2)).catch((error) => {
  console.error(`error: ${error.message}`);
  process.exitCode = 1;
});
