#!/usr/bin/env node
/** `pledgeview`: runs one of the commands, and exits with its code. */
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
import { runCommand } from './commands/command.ts'
import { commands } from './commands/commands.ts'

// Halves the time until a command begins. Where it cannot be written, there is no cache.
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/pledgeview/compiled', import.meta.url)))

// What the program and its child processes write is for their user only.
process.umask(0o077)

// What the program asks on its own machine does not go through a proxy (NODE_USE_ENV_PROXY), which would read the password of ClickHouse.
const { NO_PROXY, no_proxy = NO_PROXY } = process.env
process.env.no_proxy = [no_proxy, '127.0.0.1', '[::1]'].filter(Boolean).join(',')

// How long a finished command may take to exit by itself, ms.
const lingerMsMax = 2_000

// The reader of our output may stop early, for example `head`. Then a command ends as one that SIGPIPE ends, so that a script sees that
// its work may be unfinished.
const brokenPipeCode = 141
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(brokenPipeCode)
  process.stderr.write(`pledgeview: the output cannot be written: ${error.message}\n`)
  process.exit(1)
})
// A failed write to stderr does not stop a command.
process.stderr.on('error', () => {})

process.exitCode = await runCommand(commands, process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
})

// kafkajs can keep a connection open that it lost track of during an outage of a broker. A finished command must
// still exit, because a supervisor restarts only a process that has ended.
setTimeout(() => process.exit(), lingerMsMax).unref()
