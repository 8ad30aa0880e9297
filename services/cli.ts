#!/usr/bin/env node
/** `pledgeview`: the commands by name. Each reads its own arguments and answers with an exit code. */
import type { Command } from './commands/command.ts'
import { runCommand } from './commands/command.ts'
import { eventsCommand } from './commands/events.ts'
import { keysCommand } from './commands/keys.ts'
import { migrateCommand } from './commands/migrate.ts'
import { rejectsCommand } from './commands/rejects.ts'
import { startCommand } from './commands/start.ts'
import { statusCommand } from './commands/status.ts'

const commands: Readonly<Record<string, Command>> = {
  start: startCommand,
  events: eventsCommand,
  keys: keysCommand,
  status: statusCommand,
  rejects: rejectsCommand,
  migrate: migrateCommand,
}

process.exitCode = await runCommand(commands, process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
})
