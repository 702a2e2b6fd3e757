#!/usr/bin/env node
"use strict";
// Starts the program of this platform, which npm installed as an optional dependency.
const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const names = [`toolplane-${process.platform}-${process.arch}`, `toolplane-${process.platform}-${process.arch}-musl`];

function find() {
  for (const name of names) {
    try {
      return require.resolve(`${name}/bin/toolplane`);
    } catch (error) {
      if (error.code !== "MODULE_NOT_FOUND") throw error;
    }
  }
  console.error(`error: no program for ${process.platform} ${process.arch}: the package \`${names[0]}\` is missing`);
  console.error("hint: install without `--omit=optional` and `--no-optional`; programs exist for Linux on x64 and arm64");
  process.exit(1);
}

const program = find();
let child;
// Clients of MCP end their servers by signals, which must reach the program. The keys of a terminal signal both processes, so
// those are not passed on. The handlers stand before the start: no signal ends this process alone.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) {
  process.on(signal, () => {
    const byKey = process.stdin.isTTY && (signal === "SIGINT" || signal === "SIGQUIT");
    if (!byKey) child.kill(signal);
  });
}
child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => {
  console.error(`error: the program cannot be started: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(signal === null ? code : 128 + constants.signals[signal]));
